"""Reading resource claims from an API server."""

from __future__ import annotations

from numalign.v1 import claims_pb2 as cl
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError, Refused
from numalign_agent.api.server import ApiServer
from numalign_agent.claims.objects import claim_message


class ApiClaimReader:
    """See ClaimReader."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def read(self, namespace: str, name: str) -> cl.FetchedClaim:
        """The claim, or the server's own words for why not."""
        try:
            found = await self._server.get(paths.resource_claim(namespace, name))
            return cl.FetchedClaim(name=name, claim=claim_message(found))
        except Refused as error:
            return cl.FetchedClaim(name=name, error=error.message or str(error))
        except (ApiError, ValueError) as error:
            return cl.FetchedClaim(name=name, error=str(error))
