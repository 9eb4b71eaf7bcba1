"""Admit handlers of others as real processes beside a node: they refuse, hang, die, come back.

Whatever they do, nothing is held for a pod that was not admitted.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.integration.node_document import GPU, pod
from tests.integration.one_node import OneNode, opened

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import node_from_json
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes

_EXAMPLE = Path(__file__).parents[2] / "clients" / "examples" / "pod-quota" / "handler.py"
_LIMIT = 1


class Quota:
    """The example as a process, which allows one pod of a namespace."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, str(_EXAMPLE), str(self.socket), str(_LIMIT)]
        )
        deadline = time.monotonic() + 60
        while not self.socket.exists():
            assert self._process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        status = self._process.wait(60)
        self._process = None
        return status

    @property
    def runs(self) -> bool:
        return self._process is not None


@pytest.fixture
def quota(tmp_path: Path) -> Iterator[Quota]:
    process = Quota(tmp_path / "quota.sock")
    process.start()
    yield process
    if process.runs:
        process.send(signal.SIGCONT)
        assert process.end() == 0


@asynccontextmanager
async def _opened(
    directory: Path, *handlers: dict[str, Any], **extension: Any
) -> AsyncIterator[OneNode]:
    """A node over a host of which nothing can be read, so that it is under no pressure."""
    root = directory / "root"
    root.mkdir(exist_ok=True)
    listed = [
        {"name": "pod-quota", "endpoint": str(directory / "quota.sock"), **handler}
        for handler in handlers
    ]
    async with opened(
        directory, hostRoot=str(root), admission={"handlers": listed}, **extension
    ) as one:
        yield one


async def _set_node(one: OneNode, **allocatable: str) -> None:
    given = {"cpu": "14", "memory": "31Gi", "pods": "10", GPU: "0"} | allocatable
    node = {"metadata": {"name": "n"}, "status": {"allocatable": given}}
    await one.admission.SetNode(ad.SetNodeRequest(node=node_from_json(node)))


async def _admit(one: OneNode, message: core_pb2.Pod, **fields: Any) -> ad.AdmitResponse:
    return await one.admission.Admit(ad.AdmitRequest(pod=message, **fields), timeout=60)


async def _no_decision(one: OneNode, message: core_pb2.Pod) -> str:
    with pytest.raises(aio.AioRpcError) as failed:
        await _admit(one, message)
    assert failed.value.code() is StatusCode.UNAVAILABLE
    return failed.value.details() or ""


async def _held(one: OneNode) -> list[str]:
    return [record.pod_uid for record in (await one.listing()).admissions]


@pytest.mark.parametrize("compatibility", ["safe", "kubelet"])
@pytest.mark.parametrize("knows_its_node", [True, False], ids=["node", "no node"])
async def test_it_rejects_and_defers(
    tmp_path: Path, quota: Quota, compatibility: str, knows_its_node: bool
) -> None:
    del quota
    async with _opened(tmp_path, {}, compatibility=compatibility) as one:
        if knows_its_node:
            await _set_node(one)
        first = await _admit(one, pod("one"))
        again = await _admit(one, pod("one"))
        tried = await _admit(one, pod("two"), dry_run=True)
        second = await _admit(one, pod("two"))
        patient = pod("three")
        patient.metadata.labels["pod-quota/wait"] = "yes"
        third = await _admit(one, patient)
        await one.admission.Release(ad.ReleaseRequest(pod_uid="one"))
        held_then = await _held(one)
        fourth = await _admit(one, patient)

    assert first.verdict == pb.VERDICT_ADMITTED
    assert again.verdict == pb.VERDICT_ADMITTED
    for refused in (tried, second):
        assert (refused.verdict, refused.handler, refused.reason, refused.message) == (
            pb.VERDICT_REJECTED,
            "pod-quota",
            "PodQuotaExceeded",
            'namespace "default" has 1 pods here, and 1 at most',
        )
    assert (tried.dry_run, second.dry_run) == (True, False)
    assert (third.verdict, third.handler, third.reason) == (
        pb.VERDICT_DEFERRED,
        "pod-quota",
        "PodQuotaFull",
    )
    assert third.retry_after.ToSeconds() == 5
    # The kubelet allocates in place: what is behind that refuses too late (TOPO-8).
    assert held_then == ([] if compatibility == "safe" else ["two", "three"])
    if compatibility == "safe":
        assert fourth.verdict == pb.VERDICT_ADMITTED


@pytest.mark.parametrize("compatibility", ["safe", "kubelet"])
async def test_it_hangs_dies_and_comes_back(
    tmp_path: Path, quota: Quota, compatibility: str
) -> None:
    """DES-3: no decision, and nothing held, until it answers again."""
    async with _opened(tmp_path, {"timeout": "300ms"}, compatibility=compatibility) as one:
        await _set_node(one)
        quota.send(signal.SIGSTOP)
        hangs = await _no_decision(one, pod("one"))
        quota.send(signal.SIGCONT)
        quota.end(signal.SIGKILL)
        dead = await _no_decision(one, pod("one"))
        nothing = await _held(one)
        quota.start()
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = await _admit(one, pod("one"))
            except aio.AioRpcError:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            else:
                break
        held = await _held(one)

    assert hangs == 'admit handler "pod-quota": no answer within 0.3 s'
    assert dead.startswith('admit handler "pod-quota": ')
    assert nothing == []
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert held == ["one"]


async def test_a_failure_that_may_be_ignored(tmp_path: Path) -> None:
    async with _opened(tmp_path, {"failurePolicy": "Ignore"}) as one:
        await _set_node(one, cpu="3")
        admitted = await _admit(one, pod("one", cpu=2))
        refused = await _admit(one, pod("two", cpu=2))

    assert (admitted.verdict, refused.verdict) == (pb.VERDICT_ADMITTED, pb.VERDICT_REJECTED)
    assert (refused.handler, refused.reason) == ("predicates", "OutOfcpu")
    (warning,) = admitted.warnings
    assert warning.startswith('admit handler "pod-quota": cannot be reached at ')
    assert warning.endswith("; the pod was judged without it")


@pytest.mark.parametrize(
    ("place", "handler"),
    [
        pytest.param({"before": "predicates"}, "pod-quota", id="in front"),
        pytest.param({"after": "predicates"}, "predicates", id="behind"),
        pytest.param({}, "predicates", id="last"),
        pytest.param({"replaces": "predicates"}, "pod-quota", id="in its place"),
    ],
)
async def test_the_first_refusal_in_the_chain_counts(
    tmp_path: Path, quota: Quota, place: dict[str, str], handler: str
) -> None:
    """ADM-3."""
    del quota
    async with _opened(tmp_path, place) as one:
        await _set_node(one, cpu="2")
        await _admit(one, pod("one"))
        answer = await _admit(one, pod("two", cpu=2))

    assert (answer.verdict, answer.handler) == (pb.VERDICT_REJECTED, handler)


async def test_one_in_place_of_another_leaves_its_checks_out(tmp_path: Path, quota: Quota) -> None:
    del quota
    async with _opened(tmp_path, {"replaces": "predicates"}) as one:
        await _set_node(one, pods="0")
        answer = await _admit(one, pod("one"))

    assert answer.verdict == pb.VERDICT_ADMITTED
