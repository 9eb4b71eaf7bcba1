"""Probes: what their answers mean, and asking real sockets and commands."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.agent.made import container, ended, found, pod

from numalign_agent.containers.environment import CannotProvide
from numalign_agent.containers.spec import container_of
from numalign_agent.pod import AgentPod
from numalign_agent.probes import asking, prober
from numalign_agent.probes.prober import Prober
from numalign_agent.probes.results import (
    Judged,
    ProbeChange,
    ProbeKey,
    ProbeKind,
    ProbeSettings,
    Tally,
    counted,
    judged,
    settings_of,
)
from numalign_agent.status.port import EventType


def test_defaults() -> None:
    assert settings_of({}) == ProbeSettings(0.0, 10.0, 1.0, 1, 3)


@pytest.mark.parametrize(
    ("answers", "successes", "failures", "results"),
    [
        ("+", 1, 3, [True]),
        ("---", 1, 3, [None, None, False]),
        ("+--+---", 1, 3, [True, True, True, True, True, True, False]),
        ("--++", 2, 1, [False, False, False, True]),
    ],
)
def test_answers_count_when_they_agree(
    answers: str, successes: int, failures: int, results: list[bool | None]
) -> None:
    settings = ProbeSettings(0, 1, 1, successes, failures)
    tally, seen = Tally(), []
    for answer in answers:
        tally = counted(tally, answer == "+", settings)
        seen.append(tally.result)

    assert seen == results


READINESS: dict[str, Any] = {"readinessProbe": {}}
ALL: dict[str, Any] = {"startupProbe": {}, "readinessProbe": {}, "livenessProbe": {}}


@pytest.mark.parametrize(
    ("probes", "results", "words"),
    [
        pytest.param({}, {}, "ready started", id="no probes"),
        pytest.param(READINESS, {}, "started", id="not asked yet"),
        pytest.param(READINESS, {"readiness": True}, "ready started", id="ready"),
        pytest.param(READINESS, {"readiness": False}, "started", id="not ready"),
        pytest.param(ALL, {"readiness": True, "liveness": False}, "", id="not started yet"),
        pytest.param(ALL, {"startup": False}, "failing", id="it does not start"),
        pytest.param(
            ALL, {"startup": True, "readiness": True, "liveness": True}, "ready started", id="well"
        ),
        pytest.param(ALL, {"startup": True, "liveness": False}, "failing started", id="not alive"),
    ],
)
def test_what_results_say(probes: dict[str, Any], results: dict[str, bool], words: str) -> None:
    of = pod("p", container("a", **probes))
    told = judged(
        of,
        [found(of, "a"), ended(of, "a", attempt=1)],
        {ProbeKey("a-0", ProbeKind(kind)): result for kind, result in results.items()},
    )
    expected = {word: frozenset({"a-0"}) for word in words.split()}

    assert told == Judged(
        *(expected.get(word, frozenset()) for word in ("ready", "started", "failing"))
    )


SPEC = container_of(pod("p", container("a", ports=[{"name": "web", "containerPort": 80}])), "a")


@pytest.mark.parametrize(
    ("command", "answer"), [(["true"], True), (["false"], False), (["no-such-command"], False)]
)
async def test_commands(command: list[str], answer: bool) -> None:
    assert await asking.ask(SPEC, {"exec": {"command": command}}, 60.0) is answer


async def test_a_command_that_takes_too_long_is_ended() -> None:
    assert not await asking.ask(SPEC, {"exec": {"command": ["sleep", "60"]}}, 0.05)


@pytest.mark.parametrize(
    ("status", "answer"), [("200 OK", True), ("302 Found", True), ("404 Not Found", False)]
)
async def test_http(status: str, answer: bool) -> None:
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        probe = {
            "httpGet": {
                "path": "/health?x=1",
                "port": port,
                "httpHeaders": [{"name": "X-Who", "value": "probe"}],
            }
        }
        assert await asking.ask(SPEC, probe, 60.0) is answer
        assert await asking.ask(SPEC, {"tcpSocket": {"port": port}}, 60.0)
    assert asked[0].startswith("GET /health?x=1 HTTP/1.1\r\n")
    assert "X-Who: probe\r\n" in asked[0]
    assert not await asking.ask(SPEC, probe, 60.0)
    assert not await asking.ask(SPEC, {"tcpSocket": {"port": port}}, 60.0)


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ({"grpc": {"port": 1}}, "only exec, httpGet and tcpSocket are supported"),
        ({"tcpSocket": {"port": "other"}}, 'probe port "other" is not a port of it'),
    ],
)
def test_probes_that_cannot_be_asked(probe: dict[str, Any], message: str) -> None:
    with pytest.raises(CannotProvide, match=message):
        asking.check(SPEC, probe)


def test_ports_by_name() -> None:
    assert [asking.port_of(SPEC, {"port": port}) for port in ("web", 8080, "81")] == [80, 8080, 81]


class World:
    def __init__(self) -> None:
        self.changes: list[ProbeChange] = []
        self.events: list[str] = []
        self.prober = Prober(self.changes.append, self.event)

    def event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        self.events.append(f"{pod.name}: {kind.value} {reason} {message}")

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not true():  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.005)


async def test_probing_from_start_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober, "settings_of", lambda _: ProbeSettings(0, 0.01, 60, 1, 2))
    monkeypatch.setattr(random, "random", lambda: 0.0)
    of = pod(
        "p",
        container(
            "a",
            startupProbe={"exec": {"command": ["true"]}},
            readinessProbe={"exec": {"command": ["true"]}},
            livenessProbe={"exec": {"command": ["false"]}},
        ),
    )
    on = World()
    on.prober.follow(of, [found(of, "a")])
    await on.until(lambda: len(on.changes) == 3)

    assert {(c.key.kind.value, c.succeeded) for c in on.changes} == {
        ("startup", True),
        ("readiness", True),
        ("liveness", False),
    }
    assert on.changes[0].key.kind is ProbeKind.STARTUP
    assert "p: Warning Unhealthy Liveness probe failed" in on.events
    assert on.prober.judged(of, [found(of, "a")]).ready == {"a-0"}

    on.prober.follow(of, [])
    assert on.prober.judged(of, [found(of, "a")]).ready == frozenset()
    on.prober.stop("uid-p")
    await on.prober.close()


async def test_a_probe_that_cannot_be_asked_is_told_of() -> None:
    of = pod("p", container("a", readinessProbe={"grpc": {"port": 5}}))
    on = World()
    on.prober.follow(of, [found(of, "a")])
    await on.until(lambda: bool(on.changes))

    assert [c.succeeded for c in on.changes] == [False]
    assert on.events[0].startswith("p: Warning ProbeNotSupported container a: probe grpc")
    await on.prober.close()
