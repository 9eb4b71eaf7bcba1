"""Which handlers a version has, in which order, and what they are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import CRITICAL, node, pod

from numalign.admission.chain.built_in import (
    Chain,
    ChainSettings,
    built_in_chain,
)
from numalign.admission.chain.question import NodeFacts, Operation
from numalign.admission.chain.shown import question
from numalign.admission.chain.version import ChainVersion
from numalign.admission.chain.walk import (
    Allocated,
    End,
    Outcome,
    allocate_in_place,
    allocate_last,
)
from numalign.admission.handlers.allocation import ResizeGates, allocation_of
from numalign.admission.handlers.node_shutdown import grace_groups
from numalign.admission.handlers.predicates import NO_DEVICES
from numalign.admission.handlers.resize_feasibility import ResizeFacts

_FACTS = ResizeFacts(
    cpu_manager_policy="static",
    memory_manager_policy="None",
    swap_behavior=lambda _, __: "NoSwap",
)
_SETTINGS = ChainSettings(resize_facts=_FACTS, grace_groups=grace_groups(30, 10, ()))
_RESIZE = ResizeGates()
_APP_ARMOR = {
    "status": {"phase": "Pending"},
    "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
}


def _names(chain: Chain) -> tuple[list[str], ...]:
    return tuple([h.name for h in part] for part in (chain.before, chain.behind, chain.soft))


class Admitting:
    """A Topology Manager with room for every pod."""

    async def allocate(self, *, dry_run: bool) -> Allocated[bool]:
        return Allocated(end=End.ADMITTED, response=dry_run, devices=NO_DEVICES)


def test_order_of_each_version() -> None:
    """ADM-1, ADM-2."""
    assert _names(built_in_chain(_SETTINGS)) == (
        ["resize-feasibility", "eviction", "sysctl"],
        ["predicates", "apparmor", "pod-features", "node-declared-features", "node-shutdown"],
        [],
    )
    assert _names(built_in_chain(_SETTINGS, ChainVersion.V1_31)) == (
        ["eviction", "sysctl"],
        ["predicates", "node-shutdown"],
        ["apparmor"],
    )


def test_conditional_handlers() -> None:
    """ADM-1: AppArmor on Linux only, declared features with their feature only."""
    settings = replace(_SETTINGS, host_os="windows", declared_features=None)

    assert _names(built_in_chain(settings))[1] == ["predicates", "pod-features", "node-shutdown"]


async def _asked(
    given: dict[str, Any],
    facts: NodeFacts | None = None,
    version: ChainVersion = ChainVersion.V1_36,
    **more: Any,
) -> Outcome[bool]:
    asked = question(
        pod(**given),
        more.pop("operation", Operation.ADD),
        more.pop("active", ()),
        more.pop("allocations", {}),
        facts or NodeFacts(node=node()),
        _RESIZE,
        **more,
    )
    return await allocate_last(built_in_chain(_SETTINGS, version), asked, Admitting())


@pytest.mark.parametrize(
    ("given", "facts", "handler", "reason"),
    [
        pytest.param({}, NodeFacts(node=node()), "", "", id="admitted"),
        pytest.param(
            {}, NodeFacts(node=None, conditions=("PIDPressure",)), "eviction", "Evicted", id="first"
        ),
        pytest.param({}, NodeFacts(node=None), "predicates", "InvalidNodeInfo", id="no-node"),
        pytest.param(
            {"requests": {"cpu": "9"}} | _APP_ARMOR,
            NodeFacts(node=node(), shutting_down=True),
            "predicates",
            "OutOfcpu",
            id="fit-before-apparmor",
        ),
        pytest.param(
            _APP_ARMOR,
            NodeFacts(node=node(), shutting_down=True),
            "apparmor",
            "AppArmor",
            id="apparmor-before-shutdown",
        ),
        pytest.param(
            {"priority": CRITICAL},
            NodeFacts(node=node(), shutting_down=True),
            "node-shutdown",
            "NodeShutdown",
            id="trap-36-shutdown-beats-critical",
        ),
    ],
)
async def test_reasons_come_in_order(
    given: dict[str, Any], facts: NodeFacts, handler: str, reason: str
) -> None:
    """ADM-3."""
    outcome = await _asked(given, facts)

    assert (outcome.handler, outcome.verdict.reason) == (handler, reason)


async def test_app_armor_of_two_versions() -> None:
    """ARM-6, ARM-7, trap 38."""
    new = await _asked(_APP_ARMOR)
    old = await _asked(_APP_ARMOR, version=ChainVersion.V1_31)

    assert (new.end, old.end) == (End.REJECTED, End.DEFERRED)
    assert new.verdict == old.verdict


async def test_v1_31_knows_no_groups_policy() -> None:
    """ADM-2a."""
    given = {"securityContext": {"supplementalGroupsPolicy": "Strict"}}

    assert (await _asked(given)).verdict.reason == "SupplementalGroupsPolicyNotSupported"
    assert (await _asked(given, version=ChainVersion.V1_31)).end is End.ADMITTED


async def test_an_addition_is_shown_as_it_was_admitted() -> None:
    """ADM-6, trap 23: what is wanted beyond that is a resize."""
    allocations = {"uid-p": allocation_of(pod(requests={"cpu": "1"}), _RESIZE)}
    given = {"requests": {"cpu": "9"}}
    added = await _asked(given, allocations=allocations)
    resized = await _asked(given, allocations=allocations, operation=Operation.RESIZE)

    assert added.end is End.ADMITTED
    assert resized.verdict.reason == "OutOfcpu"


async def test_an_infeasible_resize_is_refused_first() -> None:
    """RSZ-5, RSZ-6."""
    wanted = {"cpu": "2", "memory": "1Gi"}
    outcome = await _asked(
        {"requests": wanted, "limits": wanted},
        NodeFacts(node=node(), conditions=("DiskPressure",)),
        operation=Operation.RESIZE,
    )

    assert (outcome.handler, outcome.verdict.reason) == ("resize-feasibility", "Infeasible")


async def test_others_count_with_their_allocation_and_without_the_pod_itself() -> None:
    """ADM-6."""
    active = [pod("o", requests={"cpu": "4"}), pod(requests={"cpu": "3"})]
    allocations = {"uid-o": allocation_of(pod("o", requests={"cpu": "1"}), _RESIZE)}
    outcome = await _asked({"requests": {"cpu": "3"}}, active=active, allocations=allocations)

    assert outcome.end is End.ADMITTED


_ZONE = {"nodeSelector": {"zone": "a"}}


@pytest.mark.parametrize(
    ("given", "facts", "version", "reason"),
    [
        pytest.param(
            _ZONE,
            NodeFacts(node=node(), caller_reads_node=True),
            ChainVersion.V1_36,
            "FreshNodeNeeded",
            id="affinity alone",
        ),
        pytest.param(
            _ZONE, NodeFacts(node=node()), ChainVersion.V1_36, "NodeAffinity", id="nobody reads"
        ),
        pytest.param(
            _ZONE,
            NodeFacts(node=node(), caller_reads_node=True),
            ChainVersion.V1_31,
            "NodeAffinity",
            id="v1.31 never reads",
        ),
        pytest.param(
            _ZONE | {"requests": {"cpu": "9"}},
            NodeFacts(node=node(), caller_reads_node=True),
            ChainVersion.V1_36,
            "OutOfcpu",
            id="something else, too",
        ),
        pytest.param(
            _ZONE,
            NodeFacts(node=node(), fresh_node=lambda: node(labels={"zone": "a"})),
            ChainVersion.V1_36,
            "",
            id="read, and it fits",
        ),
        pytest.param(
            _ZONE,
            NodeFacts(node=node(), fresh_node=node),
            ChainVersion.V1_36,
            "NodeAffinity",
            id="read, and it does not fit",
        ),
    ],
)
async def test_the_node_is_read_anew_for_affinity_alone(
    given: dict[str, Any], facts: NodeFacts, version: ChainVersion, reason: str
) -> None:
    """PRED-10."""
    outcome = await _asked(given, facts, version)

    assert outcome.verdict.reason == reason
    assert (outcome.end is End.DEFERRED) is (reason == "FreshNodeNeeded")


@pytest.mark.parametrize("way", [allocate_last, allocate_in_place])
async def test_preempted_pods_are_not_named_again(way: Any) -> None:
    """PRE-9, trap 30: the pod is admitted although its victim is still there."""
    critical = pod("crit", priority=CRITICAL, requests={"cpu": "2"})
    active = [pod("o", requests={"cpu": "3"})]
    chain, facts = built_in_chain(_SETTINGS), NodeFacts(node=node())

    def asked(*preempted: str) -> Any:
        return question(critical, Operation.ADD, active, {}, facts, _RESIZE, preempted=preempted)

    first = await way(chain, asked(), Admitting())
    second = await way(chain, asked("uid-o"), Admitting())

    assert (first.end, [v.uid for v in first.victims]) == (End.DEFERRED, ["uid-o"])
    assert (second.end, second.victims) == (End.ADMITTED, ())
