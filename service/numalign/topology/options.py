"""The policy options of the Topology Manager: which there are, and how their values are read.

Separate from construction because the texts of a wrong option are a table of their own.
Rule TM-12.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from numalign.errors import StartError
from numalign.model.feature_gates import FeatureGates
from numalign.model.quoting import quoted
from numalign.topology.numa_info import STAGE

OPTIONS = "topologyManagerPolicyOptions"
"""The key of the options in a configuration."""

PREFER_CLOSEST_NUMA_NODES = "prefer-closest-numa-nodes"
MAX_ALLOWABLE_NUMA_NODES = "max-allowable-numa-nodes"

KUBELET_MAX_NUMA_NODES = 8
"""How many NUMA nodes a kubelet accepts unless told otherwise; also the least it can be told."""

WIDEST_MASK = 64
"""How many NUMA nodes a mask can tell apart."""

NodeLimit: TypeAlias = Callable[[int | None], int]
"""From the option's value (None: not given) to the number of NUMA nodes accepted at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyOptions:
    """The options as read. `max_allowable_numa_nodes` None: not given."""

    prefer_closest_numa_nodes: bool = False
    max_allowable_numa_nodes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionGroups:
    """Names of the options by maturity; alpha and beta ones need their feature gate."""

    alpha: frozenset[str] = frozenset()
    beta: frozenset[str] = frozenset()
    stable: frozenset[str] = frozenset()


OPTION_GROUPS = OptionGroups(
    stable=frozenset({PREFER_CLOSEST_NUMA_NODES, MAX_ALLOWABLE_NUMA_NODES})
)

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64_RANGE = range(-(1 << 63), 1 << 63)


def kubelet_node_limit(max_allowable: int | None) -> int:
    """The option's value, else 8 (TM-12)."""
    return KUBELET_MAX_NUMA_NODES if max_allowable is None else max_allowable


def safe_node_limit(max_allowable: int | None) -> int:
    """The option's value, else all that a mask can hold: the merge copes with them."""
    return WIDEST_MASK if max_allowable is None else max_allowable


def parse_options(
    options: Mapping[str, str], gates: FeatureGates, groups: OptionGroups = OPTION_GROUPS
) -> TopologyOptions:
    """Read `options` (name to text) in the order given.

    Raises StartError with the kubelet's text for the first that is unknown, gated or badly
    written (TM-12).
    """
    prefer_closest = False
    max_allowable = None
    for name, text in options.items():
        _check_available(name, gates, groups)
        if name == PREFER_CLOSEST_NUMA_NODES:
            prefer_closest = _boolean(name, text)
        elif name == MAX_ALLOWABLE_NUMA_NODES:
            max_allowable = _max_allowable(name, text)
    return TopologyOptions(
        prefer_closest_numa_nodes=prefer_closest, max_allowable_numa_nodes=max_allowable
    )


def _check_available(name: str, gates: FeatureGates, groups: OptionGroups) -> None:
    for level, names, enabled in (
        ("alpha", groups.alpha, gates.topology_manager_policy_alpha_options),
        ("beta", groups.beta, gates.topology_manager_policy_beta_options),
    ):
        if name in names:
            if enabled:
                return
            raise StartError(
                STAGE,
                f"topology manager policy {level}-level options not enabled, "
                f"but option {quoted(name)} provided",
                setting=f"{OPTIONS}.{name}",
            )
    if name not in groups.stable:
        raise StartError(
            STAGE,
            f"unknown Topology Manager Policy option: {quoted(name)}",
            setting=f"{OPTIONS}.{name}",
        )


def _boolean(name: str, text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise StartError(
        STAGE,
        f"bad value for option {quoted(name)}: "
        f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax",
        setting=f"{OPTIONS}.{name}",
    )


def _max_allowable(name: str, text: str) -> int:
    fault = None
    if not _INTEGER.fullmatch(text):
        fault = "invalid syntax"
    elif int(text) not in _INT64_RANGE:
        fault = "value out of range"
    if fault is not None:
        raise StartError(
            STAGE,
            f"unable to convert policy option to integer {quoted(name)}: "
            f"strconv.Atoi: parsing {quoted(text)}: {fault}",
            setting=f"{OPTIONS}.{name}",
        )
    if int(text) < KUBELET_MAX_NUMA_NODES:
        raise StartError(
            STAGE,
            f"the minimum value of {quoted(name)} should not be less than {KUBELET_MAX_NUMA_NODES}",
            setting=f"{OPTIONS}.{name}",
        )
    return int(text)
