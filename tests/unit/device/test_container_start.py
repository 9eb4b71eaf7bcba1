"""What plugins do for a container that starts: make ready, allocate what is missing, edit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.device.device_world import (
    GPU,
    KUBELET,
    NIC,
    SAFE,
    Plugins,
    active,
    change,
    container,
    device,
    engine,
    held,
    hint,
    ids,
    pod,
    run,
)

from numalign.device.errors import ContainerNotPrepared
from numalign.device.inventory import PluginOptions, plugin_disconnected
from numalign.device.ports import PluginError
from numalign.device.state import DeviceState
from numalign.model.pod import Container
from numalign.provider.engine import Preparation, Sources
from numalign.provider.values import ContainerEdits

GPUS = (device("a", 0), device("b", 0), device("c", 1), device("d", 1))
NICS = (device("n", 0), device("o", 1))


def test_preparation_merges_what_the_plugins_want() -> None:
    gpu = ContainerEdits(envs={"A": "gpu", "B": "1"}, cdi_devices=("x",))
    nic = ContainerEdits(envs={"A": "nic"}, annotations={"k": "v"}, cdi_devices=("x", "y"))
    world = engine(*GPUS, nics=NICS, plugins=Plugins(edits={GPU: gpu, NIC: nic}))
    app = container(gpu=1, nic=1)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state

    after, preparation = run(world.prepare_container(state, pod(app), app))

    assert after is state
    assert preparation == Preparation(
        edits=ContainerEdits(
            envs={"A": "gpu", "B": "1"}, annotations={"k": "v"}, cdi_devices=("x", "y")
        ),
        conflicts=(
            (
                f'environment variable "A" of resource "{NIC}" conflicts with an earlier one '
                "and is left out"
            ),
        ),
    )


@pytest.mark.parametrize(
    "app",
    [
        pytest.param(container(), id="asks-for-nothing"),
        pytest.param(container(gpu=0), id="asks-for-zero"),
        pytest.param(container(nic=1), id="asks-somebody-else"),
    ],
)
def test_preparation_of_a_container_without_devices_is_empty(app: Container) -> None:
    world = engine(*GPUS)

    assert run(world.prepare_container(DeviceState(), pod(app), app)) == (
        DeviceState(),
        Preparation(),
    )


@pytest.mark.parametrize("strategies", [KUBELET, SAFE], ids=["kubelet", "safe"])
def test_preparation_allocates_what_is_missing(strategies: Any) -> None:
    edits = ContainerEdits(envs={"A": "1"})
    plugins = Plugins(edits={GPU: edits})
    world = engine(*GPUS, plugins=plugins, strategies=strategies)
    app = container(gpu=1)

    state, preparation = run(
        world.prepare_container(DeviceState(), pod(app), app, affinity=hint(1))
    )

    assert held(state) == {"app": {GPU: "c"}}
    assert preparation.edits == edits
    assert preparation.newly_allocated
    assert preparation.unready is strategies.ready_after_allocation
    assert plugins.told == [("prefer", GPU, ids("c", "d"), (), 1), ("allocate", GPU, ids("c"))]


def test_preparation_that_cannot_allocate_fails_with_the_text() -> None:
    world = engine(*GPUS)
    app = container(gpu=5)

    with pytest.raises(ContainerNotPrepared, match="Requested: 5, Available: 4"):
        run(world.prepare_container(DeviceState(), pod(app), app))


def test_pre_start_is_called_at_every_start_with_the_recorded_ids() -> None:
    plugins = Plugins()
    world = engine(*GPUS, plugins=plugins, options=PluginOptions(pre_start_required=True))
    app = container(gpu=2)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state
    plugins.told.clear()

    for _ in range(2):
        run(world.pre_start(state, pod(app), app))
        run(world.prepare_container(state, pod(app), app))

    assert plugins.told == [("pre-start", GPU, ids("a", "b"))] * 2


def test_pre_start_errors_end_the_start() -> None:
    plugins = Plugins(pre_start_error=PluginError("cold"))
    world = engine(*GPUS, plugins=plugins, options=PluginOptions(pre_start_required=True))
    app = container(gpu=1)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state

    with pytest.raises(ContainerNotPrepared) as refused:
        run(world.pre_start(state, pod(app), app))
    assert str(refused.value) == "device plugin PreStartContainer rpc failed with err: cold"

    change(world, lambda i: plugin_disconnected(i, GPU, now=1.0))
    with pytest.raises(ContainerNotPrepared, match=f"endpoint {GPU} has been stopped"):
        run(world.pre_start(state, pod(app), app))


def test_a_safe_late_container_is_made_ready_once_it_has_devices() -> None:
    plugins = Plugins()
    options = PluginOptions(pre_start_required=True)
    world = engine(*GPUS, plugins=plugins, strategies=SAFE, options=options)
    app = container(gpu=1)

    run(world.pre_start(DeviceState(), pod(app), app))
    state, preparation = run(
        world.prepare_container(DeviceState(), pod(app), app, affinity=hint(1))
    )
    run(world.pre_start(state, pod(app), app))
    _, again = run(world.prepare_container(state, pod(app), app, affinity=hint(1)))

    assert plugins.told == [("allocate", GPU, ids("c")), ("pre-start", GPU, ids("c"))]
    assert (preparation.newly_allocated, preparation.unready) == (True, True)
    assert (again.newly_allocated, again.unready) == (False, False)


def test_a_late_allocation_drops_pods_that_are_gone_first() -> None:
    world = engine(*GPUS[:1])
    app = container(gpu=1)
    ended, starting = pod(app, uid="ended"), pod(app, uid="starting")
    state = run(world.allocate(DeviceState(), ended, app, hint(0), Sources())).state

    after, _ = run(world.prepare_container(state, starting, app, sources=active(starting)))

    assert held(after, "ended") == {}
    assert held(after, "starting") == {"app": {GPU: "a"}}
