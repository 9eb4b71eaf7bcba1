"""What the plugin asks of an API server: one pod, to evict one, and to show an event.

Over the official client library, whose calls block and therefore run in threads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numalign_agent.pod import AgentPod

if TYPE_CHECKING:
    from kubernetes.client import CoreV1Api

_SECONDS = 5.0
_COMPONENT = "numalign-agent"
_LONGEST_MESSAGE = 1024
_NOT_FOUND = 404
_CONFLICT = 409


class ApiFailed(Exception):
    """The API server could not be asked, or refused; the text says why."""


class ApiServer:
    """One API server, connected to when it is first asked."""

    def __init__(self, kubeconfig: Path | None, context: str = "") -> None:
        """Make it. `kubeconfig` None: the pod's own service account."""
        self._kubeconfig = kubeconfig
        self._context = context
        self._core: CoreV1Api | None = None

    async def read_pod(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """A pod as JSON; None if there is none of this name. Raises ApiFailed."""

        def call(core: CoreV1Api) -> bytes:
            # As it stands on the wire: the library's own object would have to be turned back.
            read = cast("Callable[..., Any]", core.read_namespaced_pod)
            data: bytes = read(
                name, namespace, _preload_content=False, _request_timeout=_SECONDS
            ).data
            return data

        data = await self._call(call)
        if data is None:
            return None
        try:
            document = json.loads(data)
        except ValueError as error:
            raise ApiFailed(f"pod {namespace}/{name}: {error}") from error
        if not isinstance(document, Mapping):
            raise ApiFailed(f"pod {namespace}/{name}: the answer is no object")
        return document

    async def evict(self, namespace: str, name: str, uid: str) -> bool:
        """Evict a pod, if it is still the one of this uid. False: it is not there any more.

        Raises ApiFailed, also where a disruption budget does not allow it.
        """

        def call(core: CoreV1Api) -> object:
            from kubernetes.client import (  # noqa: PLC0415
                V1DeleteOptions,
                V1Eviction,
                V1ObjectMeta,
                V1Preconditions,
            )

            body = V1Eviction(
                metadata=V1ObjectMeta(name=name, namespace=namespace),
                delete_options=V1DeleteOptions(preconditions=V1Preconditions(uid=uid)),
            )
            return core.create_namespaced_pod_eviction(
                name, namespace, body, _request_timeout=_SECONDS
            )

        return await self._call(call) is not None

    async def warn(self, pod: AgentPod, reason: str, message: str, node: str) -> None:
        """Show a Warning event of a pod. Raises ApiFailed."""

        def call(core: CoreV1Api) -> object:
            from kubernetes.client import (  # noqa: PLC0415
                CoreV1Event,
                V1EventSource,
                V1ObjectMeta,
                V1ObjectReference,
            )

            now = datetime.now(UTC)
            event = CoreV1Event(
                metadata=V1ObjectMeta(generate_name=f"{pod.name}.", namespace=pod.namespace),
                involved_object=V1ObjectReference(
                    api_version="v1",
                    kind="Pod",
                    name=pod.name,
                    namespace=pod.namespace,
                    uid=pod.uid,
                ),
                type="Warning",
                reason=reason,
                message=message[:_LONGEST_MESSAGE],
                count=1,
                first_timestamp=now,
                last_timestamp=now,
                source=V1EventSource(component=_COMPONENT, host=node),
                reporting_component=_COMPONENT,
                reporting_instance=node,
            )
            return core.create_namespaced_event(pod.namespace, event, _request_timeout=_SECONDS)

        await self._call(call)

    async def close(self) -> None:
        """Close the connections."""
        if self._core is not None:
            await asyncio.to_thread(self._core.api_client.close)

    async def _call(self, call: Callable[[CoreV1Api], Any]) -> Any:  # noqa: ANN401 - as called
        return await asyncio.to_thread(self._blocking, call)

    def _blocking(self, call: Callable[[CoreV1Api], Any]) -> Any:  # noqa: ANN401 - as called
        from kubernetes.client import ApiException  # noqa: PLC0415 - costs memory
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            return call(self._connected())
        except ApiException as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                # It is gone, or there is another one of its name.
                return None
            raise ApiFailed(f"status {error.status} {error.reason}") from error
        except (HTTPError, OSError, ValueError) as error:
            raise ApiFailed(str(error)) from error

    def _connected(self) -> CoreV1Api:
        from kubernetes import client, config  # noqa: PLC0415

        if self._core is None:
            configuration = client.Configuration()
            # Whoever asks decides when to ask again.
            configuration.retries = 0
            try:
                if self._kubeconfig is None:
                    config.load_incluster_config(client_configuration=configuration)
                else:
                    config.load_kube_config(
                        str(self._kubeconfig),
                        context=self._context or None,
                        client_configuration=configuration,
                    )
            except config.ConfigException as error:
                raise ApiFailed(str(error)) from error
            self._core = client.CoreV1Api(client.ApiClient(configuration))
        return self._core
