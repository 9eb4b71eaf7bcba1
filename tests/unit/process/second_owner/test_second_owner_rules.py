"""Who counts as a second owner, and of what."""

from __future__ import annotations

import pytest

from numalign.process.second_owner.rules import (
    KubeletPolicy,
    NodeFacts,
    Resource,
    Seen,
    driver_of,
    is_nri_policy,
    second_owners,
)

CPU, MEMORY = Resource.CPU, Resource.MEMORY
BOTH = {CPU: "static", MEMORY: "Static"}
NEITHER = {CPU: "none", MEMORY: "None"}


def owned(facts: NodeFacts, policies: dict[Resource, str]) -> list[tuple[Resource, str]]:
    return [(owner.resource, owner.text) for owner in second_owners(facts, policies)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(NodeFacts(), [], id="nobody"),
        pytest.param(
            NodeFacts(kubelet=(KubeletPolicy(CPU, "static", "/a"),)),
            [(CPU, "the kubelet's CPU Manager has policy static (/a)")],
            id="a kubelet with static CPUs",
        ),
        pytest.param(
            NodeFacts(kubelet=(KubeletPolicy(MEMORY, "Static", "/a"),)),
            [(MEMORY, "the kubelet's Memory Manager has policy Static (/a)")],
            id="a kubelet with static memory",
        ),
        pytest.param(
            NodeFacts(
                kubelet=(
                    KubeletPolicy(CPU, "none", "/a"),
                    KubeletPolicy(CPU, "", "/b"),
                    KubeletPolicy(MEMORY, "None", "/c"),
                )
            ),
            [],
            id="a kubelet that hands out nothing",
        ),
        pytest.param(
            NodeFacts(drivers=(Seen("dra.cpu", "/r"),)),
            [(CPU, "the DRA driver dra.cpu answers (/r)")],
            id="a CPU driver",
        ),
        pytest.param(NodeFacts(drivers=(Seen("gpu.example.com", "/r"),)), [], id="other drivers"),
        pytest.param(
            NodeFacts(nri=(Seen("10-balloons", "/n"),)),
            [
                (CPU, "the NRI policy 10-balloons is on this node (/n)"),
                (MEMORY, "the NRI policy 10-balloons is on this node (/n)"),
            ],
            id="a policy of the runtime",
        ),
    ],
)
def test_who_owns(facts: NodeFacts, expected: list[tuple[Resource, str]]) -> None:
    assert owned(facts, BOTH) == expected


@pytest.mark.parametrize(
    ("policies", "resources"),
    [
        pytest.param(BOTH, {CPU, MEMORY}, id="both are handed out here"),
        pytest.param({**NEITHER, CPU: "static"}, {CPU}, id="only CPUs are"),
        pytest.param({**NEITHER, MEMORY: "Static"}, {MEMORY}, id="only memory is"),
        pytest.param(NEITHER, set(), id="nothing is"),
    ],
)
def test_only_what_is_handed_out_here_counts(
    policies: dict[Resource, str], resources: set[Resource]
) -> None:
    facts = NodeFacts(
        kubelet=(KubeletPolicy(CPU, "static", "/a"), KubeletPolicy(MEMORY, "Static", "/b")),
        nri=(Seen("topology-aware", "/n"),),
    )

    assert {resource for resource, _ in owned(facts, policies)} == resources


@pytest.mark.parametrize(
    ("name", "driver"),
    [
        ("dra.cpu-reg.sock", "dra.cpu"),
        ("dra.cpu-0f3c1d9a-1111-2222-3333-444455556666-reg.sock", "dra.cpu"),
        ("dra.memory-reg.sock", "dra.memory"),
        ("dra.cpufreq-reg.sock", ""),
        ("gpu.example.com-reg.sock", ""),
        ("dra.cpu", ""),
    ],
)
def test_drivers_by_their_registration(name: str, driver: str) -> None:
    assert driver_of(name) == driver


@pytest.mark.parametrize(
    ("name", "is_policy"),
    [
        ("10-topology-aware", True),
        ("90-balloons.conf", True),
        ("balloons", True),
        ("nri-resource-policy-topology-aware", True),
        ("nri-memory-policy", True),
        ("10-memory-qos", False),
        ("10-differ", False),
        ("hot-air-balloons", False),
        ("balloons.txt", False),
        ("", False),
    ],
)
def test_policies_of_the_runtime(name: str, is_policy: bool) -> None:
    assert is_nri_policy(name) is is_policy
