"""What is told of a pod's devices: holdings for answers, facts for explanations."""

from __future__ import annotations

from tests.unit.device.device_world import (
    GPU,
    NIC,
    bare,
    change,
    container,
    device,
    engine,
    hint,
    ids,
    pod,
    run,
)

from numalign.device.inventory import plugin_disconnected
from numalign.device.state import DeviceState
from numalign.model.ids import NumaId, PodUid
from numalign.provider.engine import Sources
from numalign.provider.values import DeviceHolding, Holder, Holding, NodeFacts, ResourceFacts

GPUS = (device("a", 0), device("b", 0), device("c", 1), device("d", 1))
NICS = (device("n", 0), device("o", 1))


def test_holdings_are_in_order_of_container_and_resource() -> None:
    world = engine(*GPUS, nics=NICS)
    asked = pod(container("z", gpu=1), container("b", gpu=1, nic=1))
    state = DeviceState()
    for each in asked.containers:
        state = run(world.allocate(state, asked, each, hint(0), Sources())).state

    assert world.holdings(state, asked.uid) == (
        Holding(
            container="b",
            devices=(
                DeviceHolding(resource=GPU, ids_by_node={0: ids("b")}),
                DeviceHolding(resource=NIC, ids_by_node={0: ids("n")}),
            ),
        ),
        Holding(container="z", devices=(DeviceHolding(resource=GPU, ids_by_node={0: ids("a")}),)),
    )
    assert world.holdings(state, PodUid("nobody")) == ()


def test_facts_name_holders_and_what_hints_leave_out() -> None:
    world = engine(*GPUS, bare("x"), device("y", 1, health="Sick"))
    app = container(gpu=1)
    first = pod(app, uid="first")
    state = run(world.allocate(DeviceState(), first, app, hint(1), Sources())).state
    asked = pod(container(gpu=3))

    (found,) = world.facts(state, asked, asked.containers[0])

    assert found == ResourceFacts(
        resource=GPU,
        requested=3,
        nodes=(
            NodeFacts(node=NumaId(0), capacity=2, reserved=0, free=2),
            NodeFacts(
                node=NumaId(1),
                capacity=3,
                reserved=0,
                free=1,
                holders=(Holder(pod_uid=first.uid, container="app", amount=1),),
            ),
        ),
        minimum_nodes=1,
        note="1 device is unhealthy and cannot be taken. "
        "1 device is without a NUMA node and in no hint.",
    )
    assert world.facts(state, asked, None) == (found,)


def test_facts_of_a_resource_whose_plugin_left() -> None:
    world = engine(bare("x"), bare("y"))
    change(world, lambda i: plugin_disconnected(i, GPU, now=1.0))
    app = container(gpu=1)

    (found,) = world.facts(DeviceState(), pod(app), app)

    assert found.minimum_nodes is None
    assert found.note == (
        "The device plugin is not connected. 2 devices are unhealthy and cannot be taken. "
        "No device reports a NUMA node, so there is no preference."
    )
