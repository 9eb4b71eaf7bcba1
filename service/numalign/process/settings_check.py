"""Whether the services would start with some settings, found out without starting any.

Separate from the start, which ends at the first refusal, as a kubelet's does: who looks at a
file wants all of them. What an earlier run has kept is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from numalign.config.machine_source import configured_machine
from numalign.config.settings import DeviceSource, Settings
from numalign.document.problems import DocumentError
from numalign.errors import ConfigError, StartError
from numalign.model.machine import Machine
from numalign.process.admission_changes import check_chain
from numalign.process.compatibility import strategies_of
from numalign.process.device_backends import refuse_devices
from numalign.process.provider_context import ProviderContext
from numalign.process.provider_parts import build_cpu_engine, build_memory_engine
from numalign.process.topology_context import TopologyContext, build_decider
from numalign.provider.pod_cache import PodCache
from numalign.rpc.accounts import accounts_of
from numalign.telemetry.metrics import Metrics


def check_settings(settings: Settings) -> None:
    """Raise ConfigError with a line for everything that the services would refuse to start over.

    Looked at are the machine, the managers' settings on it, devices, the chain of admit
    handlers, the accounts of sockets and the files of listeners.
    """
    problems: list[str] = []

    def look(check: Callable[[], object]) -> None:
        try:
            check()
        except StartError as error:
            problems.append(error.line())
        except ConfigError as error:
            problems.extend(str(error).splitlines())

    def look_at_machine() -> None:
        machine = configured_machine(settings.machine).machine
        for check in _on_machine(settings, machine):
            look(check)

    look(look_at_machine)
    look(lambda: check_chain(settings))
    look(lambda: accounts_of(settings.sockets))
    look(lambda: _check_listeners(settings))
    if problems:
        raise DocumentError(*problems)


def _on_machine(settings: Settings, machine: Machine) -> tuple[Callable[[], object], ...]:
    strategies = strategies_of(settings.compatibility)
    pods = PodCache()
    metrics = Metrics((), enabled=False)
    topology = TopologyContext(
        settings=settings, machine=machine, strategies=strategies, pods=pods, metrics=metrics
    )
    provider = ProviderContext(
        settings=settings,
        machine=machine,
        strategies=strategies,
        pods=pods,
        durable=False,
        metrics=metrics,
    )

    def devices() -> None:
        if settings.device_plugins.mode is DeviceSource.STATIC:
            refuse_devices(settings, machine.node_ids(), strategies.plugin_host.listed)

    return (
        lambda: build_decider(topology),
        lambda: build_cpu_engine(provider),
        lambda: build_memory_engine(provider),
        devices,
    )


def _check_listeners(settings: Settings) -> None:
    if not settings.listen:
        return
    from numalign.rpc.tls_server import Certificates  # noqa: PLC0415 - memory, and seldom used

    for listen in settings.listen:
        Certificates(listen.tls)
