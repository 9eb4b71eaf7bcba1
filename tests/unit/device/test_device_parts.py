"""Container edits, reuse between containers, static plugins, and which pods hold an id."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.device.device_world import GPU, NIC, container, ids, run

from numalign.device.container_edits import merged
from numalign.device.inventory import Inventory
from numalign.device.ports import PluginError
from numalign.device.reuse import after, begun
from numalign.device.state import DeviceRecord, DeviceState, Reusable, pods_holding, with_record
from numalign.device.static_plugins import StaticPlugins, preferred_ids, static_inventory
from numalign.model.ids import PodUid
from numalign.model.settings import (
    PluginPresence,
    PreferredAllocation,
    StaticDevice,
    StaticResource,
)
from numalign.provider.values import ContainerEdits, DeviceNode, Mount

POD = PodUid("pod")


def test_the_first_occurrence_of_each_key_wins() -> None:
    early = ContainerEdits(
        envs={"A": "1"},
        mounts=(Mount(container_path="/m", host_path="/1"),),
        device_nodes=(DeviceNode(container_path="/d", host_path="/1", permissions="rw"),),
        annotations={"k": "1"},
        cdi_devices=("v/c=1",),
    )
    late = ContainerEdits(
        envs={"A": "2", "B": "2"},
        mounts=(
            Mount(container_path="/m", host_path="/1", read_only=True),
            Mount(container_path="/n", host_path="/2"),
        ),
        device_nodes=(
            DeviceNode(container_path="/d", host_path="/1", permissions="rw"),
            DeviceNode(container_path="/e", host_path="/2", permissions="r"),
        ),
        annotations={"k": "2"},
        cdi_devices=("v/c=1", "v/c=2"),
    )

    result = merged({"v/z": late, "v/a": early})

    assert result.edits == ContainerEdits(
        envs={"A": "1", "B": "2"},
        mounts=(early.mounts[0], late.mounts[1]),
        device_nodes=(early.device_nodes[0], late.device_nodes[1]),
        annotations={"k": "1"},
        cdi_devices=("v/c=1", "v/c=2"),
    )
    assert [line.split(" of resource")[0] for line in result.conflicts] == [
        'environment variable "A"',
        'mount "/m"',
        'annotation "k"',
    ]


def test_a_repetition_inside_one_answer_is_one() -> None:
    mount = Mount(container_path="/m", host_path="/1")

    result = merged({"v/a": ContainerEdits(mounts=(mount, mount))})

    assert (result.edits.mounts, result.conflicts) == ((mount,), ())


def holding(names: str, resource: str = GPU) -> DeviceState:
    state = DeviceState(reusable=Reusable(POD, {GPU: frozenset(ids("b", "c"))}))
    return with_record(state, POD, "app", resource, DeviceRecord(ids_by_node={0: ids(*names)}))


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        pytest.param({"init": True}, "abc", id="regular-init-leaves-all-it-holds"),
        pytest.param({"sidecar": True}, "c", id="sidecar-keeps-its-own"),
        pytest.param({}, "c", id="app-keeps-its-own"),
    ],
)
def test_reuse_after_an_allocation(kind: dict[str, Any], left: str) -> None:
    state = after(holding("ab"), POD, container(**kind))

    assert state.reusable_by(POD, GPU) == set(left)


def test_reuse_is_untouched_by_a_container_without_records() -> None:
    state = holding("ab")

    assert after(state, POD, container("other")) is state


def test_only_one_pod_can_reuse() -> None:
    state = holding("ab")

    assert begun(state, POD) is state
    assert begun(state, PodUid("other")).reusable == Reusable(PodUid("other"))
    assert state.reusable_by(PodUid("other"), GPU) == set()


def test_pods_are_found_by_id_over_all_resources() -> None:
    assert pods_holding(holding("ab", NIC), frozenset(ids("b"))) == {POD}
    assert pods_holding(holding("ab", NIC), frozenset(ids("z"))) == set()


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        (PreferredAllocation.NONE, ""),
        (PreferredAllocation.EMPTY, ""),
        (PreferredAllocation.LOWEST_ID, "cab"),
        (PreferredAllocation.HIGHEST_ID, "ced"),
        (PreferredAllocation.TOO_MANY, "cabde"),
        (PreferredAllocation.TOO_FEW, "ca"),
    ],
    ids=str,
)
def test_preference_rules(rule: PreferredAllocation, answer: str) -> None:
    assert preferred_ids(rule, ids(*"abcde"), ids("c"), 3) == ids(*answer)


def test_preference_rule_with_an_unknown_id() -> None:
    answer = preferred_ids(PreferredAllocation.UNKNOWN_IDS, ids(*"ab"), (), 1)

    assert answer == ids("no-such-device", "a")


def resource(plugin: PluginPresence, **fields: Any) -> StaticResource:
    return StaticResource(
        resource=GPU,
        devices=(
            StaticDevice(id=ids("a")[0], numa_nodes=(0,)),
            StaticDevice(id=ids("b")[0], healthy=False),
        ),
        plugin=plugin,
        **fields,
    )


def test_a_registered_static_plugin() -> None:
    known = static_inventory([resource(PluginPresence.REGISTERED)]).of(GPU)

    assert known.healthy == frozenset(ids("a"))
    assert known.unhealthy == frozenset(ids("b"))
    assert known.devices[ids("a")[0]].numa_nodes == (0,)
    assert known.devices[ids("b")[0]].numa_nodes is None
    assert known.endpoint is not None
    assert known.endpoint.options is not None
    assert not known.endpoint.options.get_preferred_allocation_available


def test_a_disconnected_static_plugin() -> None:
    known = static_inventory([resource(PluginPresence.DISCONNECTED)]).of(GPU)

    assert known.healthy == frozenset()
    assert known.unhealthy == frozenset(ids("a", "b"))
    assert known.endpoint is not None
    assert known.endpoint.stopped_at == 0.0


def test_an_absent_static_plugin() -> None:
    assert static_inventory([resource(PluginPresence.ABSENT)]) == Inventory()


def test_static_answers() -> None:
    plugins = StaticPlugins(
        [
            resource(
                PluginPresence.REGISTERED,
                preferred_allocation=PreferredAllocation.ERROR,
                allocate_error="no power",
            )
        ]
    )

    with pytest.raises(PluginError, match=r"^no power$"):
        run(plugins.allocate(GPU, ids("a")))
    with pytest.raises(PluginError, match=r"^preferred allocation failed$"):
        run(plugins.get_preferred_allocation(GPU, ids("a"), (), 1))
    with pytest.raises(PluginError, match=f"no plugin is configured for resource {NIC}"):
        run(plugins.allocate(NIC, ids("a")))
