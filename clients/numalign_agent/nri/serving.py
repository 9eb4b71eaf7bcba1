"""Running the plugin as a process: from the configuration to its end by a signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from importlib.metadata import version
from pathlib import Path

from numalign.errors import StateError
from numalign.rpc.channel import spans_ended
from numalign.store.process_lock import ProcessLock
from numalign.telemetry.logs import configure_logs, get_logger
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.tracing import start_tracing, stop_tracing
from numalign_agent.config.loading import Overrides, document_with, load_settings
from numalign_agent.config.settings import AgentSettings
from numalign_agent.nri.admission import Admission
from numalign_agent.nri.api_calls import PodApi
from numalign_agent.nri.metrics import NRI
from numalign_agent.nri.ownership import Ownership
from numalign_agent.nri.plugin import Plugin
from numalign_agent.nri.pod_specs.api import ApiSpecs
from numalign_agent.nri.pod_specs.followed import FollowedSpecs
from numalign_agent.nri.pod_specs.kubelet import KubeletSpecs
from numalign_agent.nri.pod_specs.manifests import ManifestSpecs
from numalign_agent.nri.pod_specs.port import FirstOf, PodSpecs
from numalign_agent.nri.second_owner import SecondOwnerCheck
from numalign_agent.nri.settings import NriSettings, nri_settings
from numalign_agent.pulse import Pulse
from numalign_agent.runners.process.proc import boot_id
from numalign_agent.sources.kubelet.pods_api import KubeletPodsApi
from numalign_agent.sources.kubelet.pods_list import PodsList
from numalign_agent.web import WebPage

_LOCK = "nri.lock"
_OWNERSHIP = "nri-containers.json"
_STOP = (signal.SIGTERM, signal.SIGINT)

_log = get_logger("nri")


def serve(config: Path | None, overrides: Overrides) -> None:
    """Run the plugin until SIGTERM or SIGINT.

    `overrides` replace values of the file at `config`, by the path of their keys. Raises
    ConfigError naming every mistake, StartError where a second owner is not tolerated, and
    StateError where another plugin runs on the node.
    """
    agent = load_settings(config, overrides)
    settings = nri_settings(document_with(config, overrides))
    configure_logs(agent.log_format, agent.log_level)
    agent.state_directory.mkdir(parents=True, exist_ok=True)
    # Two would set the same of one container, and the runtime would refuse to create it.
    lock = ProcessLock.acquire(agent.state_directory / _LOCK)
    try:
        # Before the channel to Admission is opened, which takes the tracer.
        start_tracing("numalign-nri", os.environ)
        try:
            asyncio.run(_run(agent, settings))
        finally:
            stop_tracing()
    finally:
        lock.release()


async def _run(agent: AgentSettings, settings: NriSettings) -> None:
    _log.info("starting", service="nri", version=version("numalign"), owner=settings.owner)
    async with Metrics(NRI, enabled=settings.address is not None) as metrics:
        second_owner = SecondOwnerCheck(settings, metrics)
        await second_owner.refuse_start()
        api = await _api(agent)
        specs = FirstOf(_specs(agent, api))
        admission = Admission.at(agent.admission_socket, settings.owner)
        plugin = Plugin(
            admission=admission,
            specs=specs,
            api=api,
            metrics=metrics,
            settings=settings,
            cgroup_root=settings.host_root / "sys/fs/cgroup",
            ownership=_ownership(agent),
        )
        pulse = Pulse()
        page = _page(settings, metrics, plugin, pulse)
        try:
            await _until_signal(plugin.run(), second_owner.run(), pulse.run())
        finally:
            if page is not None:
                await page.close()
            await admission.close()
            await specs.close()
            if api is not None:
                await api.close()
    await spans_ended()
    _log.info("stopped", service="nri")


def _ownership(agent: AgentSettings) -> Ownership:
    try:
        boot = boot_id()
    except OSError as error:
        raise StateError(f"the id of this boot: {error}") from error
    # Earlier versions kept it beside the sockets.
    before = agent.admission_socket.parent / _OWNERSHIP
    return Ownership(agent.state_directory / _OWNERSHIP, boot, before)


def _page(settings: NriSettings, metrics: Metrics, plugin: Plugin, pulse: Pulse) -> WebPage | None:
    if settings.address is None:
        return None
    page = WebPage.serve(
        settings.address.host,
        settings.address.port,
        metrics.text,
        {"loop": pulse.still},
        {"runtime": lambda: plugin.not_connected},
    )
    _log.info("metrics served", host=settings.address.host, port=page.port)
    return page


async def _until_signal(*work: Coroutine[None, None, None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP:
        loop.add_signal_handler(number, stop.set)
    running = {asyncio.ensure_future(each) for each in work}
    stopping = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (*running, stopping):
            task.cancel()
        await asyncio.gather(*running, stopping, return_exceptions=True)


async def _api(agent: AgentSettings) -> PodApi | None:
    if agent.api is None:
        return None
    return await PodApi.connected(agent.api.kubeconfig, agent.api.context, agent.node_name)


def _specs(agent: AgentSettings, api: PodApi | None) -> list[PodSpecs]:
    """The sources, the nearest first."""
    found: list[PodSpecs] = []
    kubelet = agent.kubelet
    if kubelet is not None and kubelet.socket is not None:
        found.append(FollowedSpecs(KubeletPodsApi(kubelet.socket)))
    if kubelet is not None and kubelet.url:
        found.append(KubeletSpecs(PodsList(kubelet.url, kubelet.token_file, kubelet.ca_file)))
    if agent.file is not None:
        found.append(ManifestSpecs(agent.file.path, agent.node_name))
    if api is not None:
        found.append(ApiSpecs(api))
    if not found:
        _log.warning(
            "no source of pod specs is configured: containers of Guaranteed pods are admitted by "
            "what their cgroups are set to, and nothing is vetoed"
        )
    return found
