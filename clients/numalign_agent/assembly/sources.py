"""The sources of pods that a configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numalign_agent.config.settings import AgentSettings, KubeletSourceSettings
from numalign_agent.sources.port import PodSource

if TYPE_CHECKING:
    from numalign_agent.assembly.api_side import ApiSide


def sources_of(settings: AgentSettings, api: ApiSide | None) -> list[PodSource]:
    """Every source that is configured; none is legal (CFG-1). Each is imported only if it is."""
    sources: list[PodSource] = []
    if settings.file is not None:
        from numalign_agent.sources.file.source import FileSource  # noqa: PLC0415 - see above

        sources.append(FileSource(settings.file.path, settings.node_name, settings.file.every))
    if settings.url is not None:
        from numalign_agent.sources.http.source import HttpSource  # noqa: PLC0415 - see above

        url = settings.url
        sources.append(HttpSource(url.url, settings.node_name, url.headers, url.every))
    if api is not None:
        sources.append(api.source())
    if settings.kubelet is not None:
        sources.append(_kubelet(settings.kubelet))
    return sources


def _kubelet(settings: KubeletSourceSettings) -> PodSource:
    if settings.socket is not None:
        from numalign_agent.sources.kubelet.pods_api import KubeletPodsApi  # noqa: PLC0415

        return KubeletPodsApi(settings.socket)
    from numalign_agent.sources.kubelet.pods_url import KubeletPodsUrl  # noqa: PLC0415

    return KubeletPodsUrl(settings.url, settings.token_file, settings.ca_file, settings.every)
