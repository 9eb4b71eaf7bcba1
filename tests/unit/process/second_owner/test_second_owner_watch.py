"""What follows from a second owner: at the start, and while services run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from numalign.config.defaults import Defaults, Directories
from numalign.config.from_document import settings_from_document
from numalign.config.settings import SecondOwner, Service, Settings
from numalign.errors import StartError
from numalign.process.part import Part
from numalign.process.second_owner import watch as module
from numalign.process.second_owner.rules import KubeletPolicy, NodeFacts, Resource
from numalign.process.second_owner.watch import SecondOwnerWatch
from numalign.rpc.methods import Registration
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.own_metrics import OWNERS

STATIC = NodeFacts(kubelet=(KubeletPolicy(Resource.CPU, "static", "/state"),))
TEXT = "the kubelet's CPU Manager has policy static (/state)"
REPORT = f"second owner of CPUs: {TEXT}"


def settings(choice: str = "refuse") -> Settings:
    defaults = Defaults(
        directories=Directories(runtime=Path("/run/x"), state=Path("/var/lib/x")),
        base_directory=Path("/"),
        read_file=lambda _: None,
        memory_capacity=lambda _: 1 << 30,
    )
    return settings_from_document(
        {
            "cpuManagerPolicy": "static",
            "reservedSystemCPUs": "0",
            "numalign": {"secondOwner": choice},
        },
        defaults,
    )


class Node:
    """Facts that change while it is watched."""

    def __init__(self, facts: NodeFacts) -> None:
        self.facts = facts
        self.looks = 0

    def look(self, _: Settings) -> NodeFacts:
        self.looks += 1
        return self.facts


async def test_a_second_owner_prevents_the_start() -> None:
    watch = SecondOwnerWatch(settings(), [Service.CPU], Node(STATIC).look)

    with pytest.raises(StartError) as caught:
        await watch.refuse_start()

    assert caught.value.stage == "second owner"
    assert str(caught.value) == (
        f"{TEXT}: the same CPUs would be handed out twice. Turn one of the two off, or set "
        "numalign.secondOwner to tolerate"
    )


@pytest.mark.parametrize(
    "service", [Service.MEMORY, Service.TOPOLOGY, Service.ADMISSION, Service.DEVICE]
)
async def test_services_that_do_not_fight_start(service: Service) -> None:
    await SecondOwnerWatch(settings(), [service], Node(STATIC).look).refuse_start()


async def test_nothing_is_looked_at_for_services_that_hand_out_neither() -> None:
    node = Node(STATIC)
    await SecondOwnerWatch(settings(), [Service.TOPOLOGY], node.look).refuse_start()
    assert node.looks == 0


def part() -> Part:
    return Part(
        service=Service.CPU,
        registration=Registration(lambda *_: None, object()),
        health_name="x",
        reports=lambda: ("own",),
    )


async def test_tolerated_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    watch = SecondOwnerWatch(settings("tolerate"), [Service.CPU], Node(STATIC).look)
    await watch.refuse_start()
    said: list[bool] = []
    metrics = Metrics(OWNERS, enabled=True)
    watch.tell(metrics, {Service.CPU: said.append})

    (reporting,) = watch.reporting([part()])
    assert reporting.reports() == ("own", REPORT)
    assert 'numalign_second_owners{resource="cpu"} 1.0' in metrics.text()
    assert said == []


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("choice", "health"), [("refuse", [False, True]), ("tolerate", [])], ids=["refuse", "tolerate"]
)
async def test_one_that_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch, choice: str, health: list[bool]
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    node = Node(NodeFacts())
    watch = SecondOwnerWatch(settings(choice), Service, node.look)
    await watch.refuse_start()
    said: list[bool] = []
    metrics = Metrics(OWNERS, enabled=True)
    watch.tell(metrics, {Service.CPU: said.append, Service.ADMISSION: said.append})
    (reporting,) = watch.reporting([part()])
    running = asyncio.create_task(watch.run())

    assert reporting.reports() == ("own",)
    node.facts = STATIC
    await eventually(lambda: reporting.reports() == ("own", REPORT))
    assert 'numalign_second_owners{resource="cpu"} 1.0' in metrics.text()
    node.facts = NodeFacts()
    await eventually(lambda: reporting.reports() == ("own",))
    assert 'numalign_second_owners{resource="cpu"} 0.0' in metrics.text()
    assert said == health
    running.cancel()


async def test_a_new_configuration_is_looked_at_at_once() -> None:
    node = Node(STATIC)
    watch = SecondOwnerWatch(settings("tolerate"), [Service.CPU], node.look)
    await watch.refuse_start()
    said: list[bool] = []
    watch.tell(Metrics(OWNERS, enabled=False), {Service.CPU: said.append})
    running = asyncio.create_task(watch.run())
    new = replace(settings(), second_owner=SecondOwner.REFUSE)

    assert watch.reload(new) == ("numalign.secondOwner",)
    await eventually(lambda: said == [False])
    assert watch.reload(replace(new, host_root=Path("/host"))) == ("numalign.hostRoot",)
    running.cancel()
