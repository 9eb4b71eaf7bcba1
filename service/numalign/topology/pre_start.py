"""Having providers make a container's resources ready before it is prepared (DEV-41).

Separate from the manager, which holds no turn meanwhile: a device may take half a minute to
be ready, and other pods are decided on.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from numalign.errors import NotPrepared
from numalign.topology.provider_handle import ProviderHandle
from numalign.v1 import hint_provider_pb2 as hp

PRE_START_SECONDS = 35.0
"""How long a provider may take: the half minute of a device plugin, and a little for itself."""


async def pre_start(handles: Iterable[ProviderHandle], pod: bytes, container: str) -> None:
    """Ask every provider that wants it, one after the other.

    Raises NotPrepared with the first refusal, and ProviderDown.
    """
    request = hp.HintProviderPreStartContainerRequest(pod=pod, container=container)
    for handle in handles:
        if not (handle.pre_starts and handle.instance_id):
            continue
        response = await handle.call(
            partial(handle.stub.PreStartContainer, request, timeout=PRE_START_SECONDS)
        )
        if response.HasField("failure"):
            raise NotPrepared(response.failure.message)
