"""To the API server of a kubeconfig, whose many ways to credentials are the official client's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from numalign.document.text import REFUSED_BY_YAML
from numalign_agent.api.errors import ApiError
from numalign_agent.api.transport import AGENT, Body

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientTimeout
    from kubernetes.aio.client.api_client import ApiClient


class OfficialClient:
    """The transport, address and credentials of the official client.

    Its models are left aside, because an agent has to hand on fields of a pod that this version of
    the client does not know yet.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        client.user_agent = AGENT

    @classmethod
    async def of(cls, kubeconfig: Path, context: str) -> OfficialClient:
        """The server of a kubeconfig's context. Raises ApiError for one that cannot be used."""
        from kubernetes.aio import config  # noqa: PLC0415 - only who has a kubeconfig needs it
        from kubernetes.aio.client.api_client import ApiClient  # noqa: PLC0415 - as above
        from kubernetes.aio.client.configuration import Configuration  # noqa: PLC0415 - as above

        _check_there(kubeconfig)
        configuration = Configuration()
        try:
            await config.load_kube_config(
                config_file=str(kubeconfig),
                context=context or None,
                client_configuration=configuration,
            )
            return cls(ApiClient(configuration))
        except (config.ConfigException, OSError, *REFUSED_BY_YAML) as error:  # it may hold anything
            why = str(error) or type(error).__name__
            raise ApiError(f"kubeconfig {kubeconfig}: cannot be used: {why}") from error

    @property
    def address(self) -> str:
        """See Transport."""
        return str(self._client.configuration.host)

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: Body | None,
        timeout: ClientTimeout,  # noqa: ASYNC109 - as above
    ) -> ClientResponse:
        """See Transport."""
        request = await self._client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params=dict(headers),
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = await self._client.call_api(*request, _request_timeout=timeout)
        response: ClientResponse = answer.response
        return response

    async def close(self) -> None:
        """See Transport."""
        await self._client.close()


def _check_there(kubeconfig: Path) -> None:
    """The client takes a file that is not there for an empty one."""
    if not kubeconfig.exists():
        raise ApiError(
            f"kubeconfig {kubeconfig}: cannot be used: there is no such file; name another one in "
            "numalign.agent.api.kubeconfig, or none where the agent runs in a pod with a service "
            "account"
        )
