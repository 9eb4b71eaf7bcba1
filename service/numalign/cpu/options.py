"""The options of the static policy: which exist, which are available, which exclude each other.

Rules CPU-3..CPU-6. Every error is an OptionError with the kubelet's text, without the
prefix of CPU-7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numalign.cpu.topology import CpuTopology
from numalign.model.feature_gates import FeatureGates
from numalign.model.quoting import quoted

_STABLE = frozenset(
    {"full-pcpus-only", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"}
)
_BETA = frozenset({"distribute-cpus-across-numa"})
_ALPHA = frozenset({"align-by-socket", "distribute-cpus-across-cores"})

_CONFLICTS = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class OptionError(ValueError):
    """An option that is unknown, not available, wrong, or in conflict with another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuOptions:
    """The options of the static policy (CPU-3); one field for each, in the same words."""

    full_pcpus_only: bool = False
    strict_cpu_reservation: bool = False
    prefer_align_cpus_by_uncorecache: bool = False
    distribute_cpus_across_numa: bool = False
    align_by_socket: bool = False
    distribute_cpus_across_cores: bool = False


def parse_options(written: Mapping[str, str], gates: FeatureGates) -> CpuOptions:
    """The options as configured, in order of name. Raises OptionError (CPU-4, CPU-5)."""
    values: dict[str, bool] = {}
    for name in sorted(written):
        _check_available(name, gates)
        values[name] = _parse_bool(name, written[name])
    for first, second in _CONFLICTS:
        if values.get(first) and values.get(second):
            raise OptionError(
                f"static policy options {first} and {second} can not be used at the same time"
            )
    return CpuOptions(**{name.replace("-", "_"): value for name, value in values.items()})


def check_options(options: CpuOptions, topology: CpuTopology, topology_policy: str) -> None:
    """Refuse what does not go with the machine or the Topology Manager's policy (CPU-6)."""
    if not options.align_by_socket:
        return
    if topology_policy == "single-numa-node":
        raise OptionError(
            "Topolgy manager single-numa-node policy is incompatible with CPUManager "
            "align-by-socket policy option"
        )
    if topology.num_sockets > len(topology.nodes):
        raise OptionError(
            "Align by socket is not compatible with hardware where number of sockets are "
            "more than number of NUMA"
        )


def _check_available(name: str, gates: FeatureGates) -> None:
    if name in _STABLE:
        return
    if name in _BETA:
        if not gates.cpu_manager_policy_beta_options:
            raise OptionError(
                "CPU Manager Policy Beta-level Options not enabled, "
                f"but option {quoted(name)} provided"
            )
    elif name in _ALPHA:
        if not gates.cpu_manager_policy_alpha_options:
            raise OptionError(
                "CPU Manager Policy Alpha-level Options not enabled, "
                f"but option {quoted(name)} provided"
            )
    else:
        raise OptionError(f"unknown CPU Manager Policy option: {quoted(name)}")


def _parse_bool(name: str, text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise OptionError(
        f"bad value for option {quoted(name)}: "
        f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax"
    )
