"""Where resource claims are read, behind one interface."""

from __future__ import annotations

from typing import Protocol

from numalign.v1 import claims_pb2 as cl

NO_SERVER = "no API server is configured"


class ClaimReader(Protocol):
    """Reads claims."""

    async def read(self, namespace: str, name: str) -> cl.FetchedClaim:
        """The claim as it is now, or the error that reading it ended with."""


class NoClaims:
    """Stands where there is no API server: no claim can be read."""

    async def read(self, namespace: str, name: str) -> cl.FetchedClaim:  # noqa: ARG002 - the port's
        """Says so."""
        return cl.FetchedClaim(name=name, error=NO_SERVER)
