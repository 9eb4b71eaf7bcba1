"""A pod takes its recorded devices back where the books have lost them."""

from __future__ import annotations

from tests.unit.device.device_world import GPU, device, engine, ids

from numalign.device.state import DeviceState
from numalign.model.ids import PodUid
from numalign.provider.engine import Lost, Recorded
from numalign.provider.values import ContainerEdits, DeviceHolding, Holding

EDITS = ContainerEdits(envs={"VISIBLE": "a"})


def recorded(uid: str, **devices: str) -> Recorded:
    return Recorded(
        pod_uid=PodUid(uid),
        holdings=tuple(
            Holding(
                container=container,
                devices=(DeviceHolding(resource=GPU, ids_by_node={0: ids(*names)}, edits=EDITS),),
            )
            for container, names in devices.items()
        ),
    )


def test_devices_come_back_by_id_with_what_their_plugin_said() -> None:
    world = engine(device("a", 0), device("b", 0))

    restored = world.restore(DeviceState(), recorded("p", i="a", c="ab"))

    assert restored.lost == ()
    record = restored.state.record(PodUid("p"), "c", GPU)
    assert record is not None
    assert record.ids() == {"a", "b"}
    assert record.edits == EDITS
    assert restored.state.allocated == {GPU: frozenset({"a", "b"})}
    assert world.start(world.encode(restored.state)).state.records == restored.state.records


def test_a_device_that_its_plugin_has_not_reported_yet_comes_back_too() -> None:
    world = engine()

    restored = world.restore(DeviceState(), recorded("p", c="a"))

    assert restored.lost == ()
    assert restored.state.allocated == {GPU: frozenset({"a"})}


def test_a_device_of_another_pod_is_named() -> None:
    world = engine(device("a", 0), device("b", 0))
    state = world.restore(DeviceState(), recorded("other", c="b")).state

    restored = world.restore(state, recorded("p", c="ab"))

    assert restored.lost == (Lost(container="c", message=f"{GPU} a, b: b held by another pod"),)
    assert restored.state is state
