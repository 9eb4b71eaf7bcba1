"""How services and hint providers stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from numalign.config.settings import Service
from numalign.v1 import control_pb2 as ct
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One service: where it is, and what it said of itself or why it said nothing."""

    service: Service
    socket: str
    status: ct.GetStatusResponse | None
    why_not: str = ""


def services_table(states: Iterable[ServiceState]) -> Table:
    """A row for each service; `config` is the number of the configuration in force."""
    table = Table("service", "state", "process", "version", "mode", "config", "socket", box=None)
    for state in states:
        status = state.status
        if status is None:
            table.add_row(
                state.service.value, Text(state.why_not, style="red"), "", "", "", "", state.socket
            )
            continue
        table.add_row(
            state.service.value,
            Text("up", style="green"),
            str(status.pid),
            status.version,
            status.compatibility,
            str(status.config_generation or "-"),
            state.socket,
        )
    table.columns[-1].overflow = "fold"
    return table


def providers_table(providers: Iterable[tm.HintProviderStatus]) -> Table:
    """A row for each hint provider, in their order."""
    table = Table("provider", "state", "resources", "on failure", "timeout", "endpoint", box=None)
    for provider in providers:
        ignored = provider.failure_policy == pb.FAILURE_POLICY_IGNORE
        table.add_row(
            provider.name if provider.built_in else f"{provider.name} (third party)",
            provider_state(provider),
            "\n".join(provider.resources) or "-",
            "go on without" if ignored else "fail",
            f"{provider.timeout.ToMilliseconds() / 1000:g} s",
            provider.endpoint,
        )
    for column in table.columns:
        column.overflow = "fold"
    return table


def provider_state(provider: tm.HintProviderStatus) -> Text:
    """Whether the provider answers, as far as the Topology Manager knows."""
    if provider.last_error:
        return Text(_in_short(provider.last_error), style="red")
    return Text("up", style="green") if provider.instance_id else Text("not asked yet")


def _in_short(error: str) -> str:
    """The error; of a connection that failed, only what the system said."""
    before, _, reason = error.rpartition("error: ")
    return f"down: {reason}" if "failed to connect" in before else error
