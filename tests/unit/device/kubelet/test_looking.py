from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.device.device_world import GPU, container, pod
from tests.unit.device.kubelet.kubelet_world import FOUR, Kubelet, silent, told, told_pod
from tests.waiting import LONG, until

from numalign.device.kubelet import looking
from numalign.device.kubelet.engine import KubeletDeviceEngine
from numalign.device.kubelet.looking import KubeletLook, PollTimes
from numalign.model.ids import AdmissionId
from numalign.model.pod import Pod

ONE, TWO = AdmissionId("1"), AdmissionId("2")
WHICH: Pod = pod(container(gpu=1), name="p", namespace="default")
GIVEN = told_pod("p", {"app": (told("c", 1),)})


class World:
    """One kubelet, one engine, one look; `heard` and `carried` are what the look said."""

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet
        self.engine: KubeletDeviceEngine = silent()
        self.heard: list[str | None] = []
        self.carried = 0
        times = PollTimes(interval=0.01, back_off=0.01)
        self.look = KubeletLook(kubelet, self.engine, self._carry, self.heard.append, times)

    async def _carry(self) -> None:
        self.carried += 1

    def known(self) -> bool:
        return not self.engine.is_awaited(WHICH)


@pytest.fixture
def world() -> World:
    return World(Kubelet())


@asynccontextmanager
async def polled(world: World) -> AsyncIterator[None]:
    world.look.start()
    try:
        yield
    finally:
        await world.look.close()


async def test_a_pod_is_asked_for_once_in_an_admission(world: World) -> None:
    world.kubelet.give(GIVEN)
    await world.look.refresh()
    world.kubelet.calls.clear()

    await world.look.look_at(ONE, WHICH)
    await world.look.look_at(ONE, WHICH)

    assert world.known()
    assert world.kubelet.calls == ["pod"]
    await world.look.look_at(TWO, WHICH)
    assert world.kubelet.calls == ["pod", "pod"]


async def test_nothing_is_asked_about_a_pod_without_devices(world: World) -> None:
    await world.look.look_at(ONE, pod(container(), name="p"))

    assert world.kubelet.calls == []


async def test_a_kubelet_without_get_is_asked_for_all_pods(world: World) -> None:
    world.kubelet.serves_get = False
    world.kubelet.give(GIVEN)
    await world.look.refresh()
    world.kubelet.calls.clear()

    await world.look.look_at(ONE, WHICH)

    assert world.known()
    assert world.kubelet.calls == ["pod", "pods"]


async def test_devices_that_come_a_little_later_are_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOK_SECONDS", LONG)
    await world.look.refresh()
    looked = asyncio.ensure_future(world.look.look_at(ONE, WHICH))
    await asyncio.sleep(0.05)
    assert not looked.done()
    world.kubelet.give(GIVEN)
    await looked

    assert world.known()


async def test_waiting_ends_after_half_a_second(world: World) -> None:
    clock = asyncio.get_running_loop().time
    await world.look.refresh()
    started = clock()

    await asyncio.wait_for(world.look.look_at(ONE, WHICH), LONG)

    assert clock() - started >= 0.4
    assert not world.known()


async def test_what_was_told_before_is_not_relied_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOK_SECONDS", 0.05)
    world.kubelet.give(GIVEN)
    await world.look.refresh()
    assert world.known()
    world.kubelet.failing |= {"pod", "pods"}

    await world.look.look_at(ONE, WHICH)

    assert not world.known()
    assert world.heard == ["UNAVAILABLE: no pod"]


async def test_a_new_pod_of_the_same_name_has_its_own_devices(world: World) -> None:
    world.kubelet.give(GIVEN)
    await world.look.refresh()
    world.kubelet.give(told_pod("p", {"app": (told("a", 0),)}))

    await world.look.look_at(ONE, WHICH)

    (pod_told,) = world.engine.observation.pods.values()
    assert pod_told.containers["app"] == (told("a", 0),)


async def test_the_first_look_asks_for_everything(world: World) -> None:
    world.kubelet.give(GIVEN)

    await world.look.look_at(ONE, WHICH)

    assert world.known()
    assert world.engine.observation.complete
    assert world.carried == 1


async def test_a_resource_that_came_since_the_last_poll_is_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the first pods of a new device plugin would be placed apart from their devices."""
    monkeypatch.setattr(looking, "LOOK_SECONDS", 0.05)
    world.kubelet.devices = ()
    await world.look.refresh()
    assert world.known()
    world.kubelet.devices = FOUR

    await world.look.look_at(ONE, WHICH)
    assert not world.known()
    world.kubelet.give(GIVEN)
    await world.look.look_at(TWO, WHICH)

    assert world.known()
    assert world.engine.observation.pods == {GIVEN.key: GIVEN}


async def test_a_resource_that_is_no_device_of_the_kubelet_is_not_waited_for(world: World) -> None:
    world.kubelet.devices = ()
    await world.look.refresh()
    world.kubelet.calls.clear()

    await world.look.look_at(ONE, WHICH)

    assert world.known()
    assert world.kubelet.calls == ["allocatable", "pods", "pod", "pods"]


async def test_polls_carry_changes_alone(world: World) -> None:
    async with polled(world):
        await until(lambda: world.kubelet.calls.count("pods") >= 4)
        assert world.carried == 1
        world.kubelet.give(GIVEN)
        await until(lambda: world.carried == 2)

    assert world.engine.resources() == (GPU,)


async def test_a_silent_kubelet_is_told_of_once_and_found_again(world: World) -> None:
    world.kubelet.failing.add("pods")
    async with polled(world):
        await until(lambda: world.kubelet.calls.count("pods") >= 3)
        assert world.carried == 0
        world.kubelet.failing.clear()
        await until(lambda: len(world.heard) == 2)

    assert world.carried == 1
    assert world.heard == ["UNAVAILABLE: no pods", None]
