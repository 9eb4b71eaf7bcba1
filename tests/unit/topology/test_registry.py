"""Providers come, restart and are told how things are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from grpc import StatusCode
from tests.unit.topology.fake_provider import FakeProvider, handle_to

from numalign.errors import AlreadyExists, InvalidInput, NotFound, StateNotWritten
from numalign.topology.provider_handle import ProviderDown, ProviderHandle
from numalign.topology.registry import ProviderRegistry, overlap
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb


async def unheard(handle: ProviderHandle, told: hp.WatchResponse) -> None:
    """Nobody listens."""


async def introduce(handle: ProviderHandle) -> None:
    await handle.introduce(hp.HintProviderReconcileRequest())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("cpu", "cpu", True, id="equal"),
        pytest.param("cpu", "memory", False, id="different"),
        pytest.param("hugepages-*", "hugepages-2Mi", True, id="prefix"),
        pytest.param("hugepages-*", "memory", False, id="other-prefix"),
        pytest.param("huge*", "hugepages-*", True, id="prefix-of-prefix"),
        pytest.param("a*", "b*", False, id="two-prefixes"),
    ],
)
def test_overlap(one: str, other: str, same: bool) -> None:
    assert overlap(one, other) is same
    assert overlap(other, one) is same


async def test_only_strangers_are_introduced() -> None:
    known, stranger = FakeProvider("known"), FakeProvider("stranger")
    registry = ProviderRegistry([handle_to(known), handle_to(stranger, introduced=False)], unheard)
    await registry.ready(introduce)
    assert (known.asked, stranger.asked) == ([], ["GetInfo", "Reconcile"])


@pytest.mark.parametrize("ignored", [False, True])
async def test_a_stranger_that_is_down(ignored: bool) -> None:
    down = FakeProvider("down")
    down.broken["GetInfo"] = StatusCode.UNAVAILABLE
    policy = pb.FAILURE_POLICY_IGNORE if ignored else pb.FAILURE_POLICY_FAIL
    handle = handle_to(down, introduced=False, failure_policy=policy)
    registry = ProviderRegistry([handle], unheard)
    ready: Awaitable[None] = registry.ready(introduce)
    if ignored:
        await ready
    else:
        with pytest.raises(ProviderDown, match="hint provider down"):
            await ready


async def test_outcomes_are_delivered_before_the_next_admission() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider)
    registry = ProviderRegistry([handle], unheard)
    handle.deliver_later(lambda: handle.stub.Commit(hp.CommitRequest(), timeout=1))
    await registry.ready(introduce)
    assert provider.asked == ["Commit"]


async def test_a_watch_hears_of_restarts_and_shared_cpus() -> None:
    heard: list[tuple[str, str]] = []

    async def hear(handle: ProviderHandle, told: hp.WatchResponse) -> None:
        heard.append((handle.name, told.shared_cpus))

    provider = FakeProvider("p")
    handle = handle_to(provider)
    registry = ProviderRegistry([handle], hear)
    registry.watch_all()
    try:
        await until(lambda: heard == [("p", "0-3")])
        assert handle.resources == ("example.com/p",)
        assert handle.instance_id == "p-1"
        provider.restart()
        provider.changed.set()
        await until(lambda: handle.instance_id == "")
    finally:
        await registry.close()


async def test_a_third_party_registers_once_and_again_at_its_place() -> None:
    registry = ProviderRegistry([handle_to(FakeProvider("cpu", "cpu"), built_in=True)], unheard)
    registry.handles[0].resources = ("cpu",)
    try:
        await registry.register(handle_to(FakeProvider("fpga"), introduced=False))
        await registry.register(handle_to(FakeProvider("fpga"), introduced=False))
        assert [handle.name for handle in registry.handles] == ["cpu", "fpga"]
        moved = handle_to(FakeProvider("fpga"), introduced=False)
        moved.endpoint = "unix:///elsewhere"
        with pytest.raises(AlreadyExists, match='provider "fpga" is registered at'):
            await registry.register(moved)
        with pytest.raises(AlreadyExists, match='"cpu" of provider "mine" is served by'):
            await registry.register(handle_to(FakeProvider("mine", "cpu"), introduced=False))
        with pytest.raises(AlreadyExists, match='provider "cpu" is registered'):
            await registry.register(handle_to(FakeProvider("cpu", "x/y"), introduced=False))
    finally:
        await registry.close()


async def test_one_that_is_recalled_is_named_with_the_way_out_until_it_answers() -> None:
    provider = FakeProvider("licences")
    provider.broken["GetInfo"] = StatusCode.UNAVAILABLE
    registry = ProviderRegistry([handle_to(FakeProvider("cpu"), built_in=True)], unheard)
    registry.recall(handle_to(provider, introduced=False))
    assert registry.lacks_recalled_alone
    with pytest.raises(ProviderDown) as down:
        await registry.ready(introduce)
    assert str(down.value).startswith("hint provider licences: UNAVAILABLE: ")
    assert "has not answered this one; numalign providers --forget" in str(down.value)
    provider.broken.clear()
    await registry.ready(introduce)
    provider.restart()
    provider.broken["GetInfo"] = StatusCode.UNAVAILABLE
    registry.forget_processes()
    with pytest.raises(ProviderDown, match=r"hint provider licences: UNAVAILABLE: [^(]*$"):
        await registry.ready(introduce)
    assert not registry.lacks_recalled_alone


async def test_one_that_is_recalled_may_have_moved() -> None:
    registry = ProviderRegistry([], unheard)
    registry.recall(handle_to(FakeProvider("fpga"), introduced=False))
    moved = handle_to(FakeProvider("fpga"), introduced=False)
    moved.endpoint = "unix:///elsewhere"
    try:
        await registry.register(moved)
        assert registry.handles == (moved,)
        with pytest.raises(AlreadyExists, match="is registered at unix:///elsewhere"):
            await registry.register(handle_to(FakeProvider("fpga"), introduced=False))
    finally:
        await registry.close()


async def test_who_has_registered_can_be_asked_no_more() -> None:
    left: list[str] = []
    provider = FakeProvider("fpga")
    registry = ProviderRegistry(
        [handle_to(FakeProvider("cpu"), built_in=True), handle_to(FakeProvider("listed"))],
        unheard,
        left=lambda handle: left.append(handle.name),
    )
    try:
        await registry.register(handle_to(provider, introduced=False))
        await until(lambda: provider.watching == 1)
        # One that is listed may register as well, and is not one of those that can be forgotten.
        await registry.register(handle_to(FakeProvider("listed"), introduced=False))
        for name in ("cpu", "listed"):
            with pytest.raises(InvalidInput, match=f'"{name}" is there by the configuration'):
                await registry.deregister(name)
        with pytest.raises(NotFound, match='name: no hint provider "nobody" is registered'):
            await registry.deregister("nobody")
        await registry.deregister("fpga")
        assert [handle.name for handle in registry.handles] == ["cpu", "listed"]
        assert not any(handle.registered for handle in registry.handles)
        assert left == ["fpga"]
        await until(lambda: provider.watching == 0)
    finally:
        await registry.close()


async def test_a_watch_goes_on_when_what_it_tells_cannot_be_kept() -> None:
    heard: list[str] = []

    async def hear(handle: ProviderHandle, told: hp.WatchResponse) -> None:
        heard.append(told.shared_cpus)
        if len(heard) < 3:
            raise StateNotWritten("t.db", "state file t.db: disk I/O error")

    provider = FakeProvider("p")
    handle = handle_to(provider)
    registry = ProviderRegistry([handle], hear)
    registry.watch_all()
    try:
        await until(lambda: len(heard) == 3)
        # The watches that were given up are not left open.
        await until(lambda: provider.watching == 1)
        provider.restart()
        provider.changed.set()
        await until(lambda: handle.instance_id == "")
    finally:
        await registry.close()
