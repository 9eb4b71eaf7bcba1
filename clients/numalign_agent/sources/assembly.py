"""The sources that a configuration names."""

from __future__ import annotations

from numalign_agent.api.side import ApiSide
from numalign_agent.config.settings import AgentSettings, KubeletSourceSettings
from numalign_agent.sources.api import ApiSource
from numalign_agent.sources.file.source import FileSource
from numalign_agent.sources.http.source import HttpSource
from numalign_agent.sources.kubelet.pods_api import KubeletPodsApi
from numalign_agent.sources.kubelet.pods_url import KubeletPodsUrl
from numalign_agent.sources.port import PodSource


def make_sources(settings: AgentSettings, api: ApiSide | None) -> tuple[PodSource, ...]:
    """One object for each source of `settings`; `api` is there if an API server is (CFG-1)."""
    node = settings.node_name
    sources: list[PodSource] = []
    if settings.file is not None:
        sources.append(FileSource(settings.file.path, node, settings.file.every))
    if settings.url is not None:
        url = settings.url
        sources.append(HttpSource(url.url, node, url.headers, url.every))
    if api is not None:
        sources.append(ApiSource(api.server, node, api.node.synced))
    if settings.kubelet is not None:
        sources.append(_kubelet(settings.kubelet))
    return tuple(sources)


def _kubelet(settings: KubeletSourceSettings) -> PodSource:
    if settings.socket is not None:
        return KubeletPodsApi(settings.socket)
    return KubeletPodsUrl(settings.url, settings.token_file, settings.ca_file, settings.every)
