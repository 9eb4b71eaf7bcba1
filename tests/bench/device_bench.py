"""How long an Admit takes while device plugins tell of changes of health, against without.

20 plugins with 25 devices each, a third of them held by pods that run; each plugin sends its list
once a second, with other health. Quiet and busy seconds take turns, so that both see the same
machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.admit_bench import Admissions, until_decided
from tests.bench.processes import ROOT, Unmeasurable, running, service_command, until_serving
from tests.bench.times import Compared, Times
from tests.bench.updating_plugins import DEVICES, RESOURCES, resource_of
from tests.integration.node_document import write_document

from numalign.config.settings import CORE_SERVICES
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

WINDOW_SECONDS = 1.0
HELD = DEVICES // 3


async def measure(directory: Path, samples: int, warm_up: int, *, processes: bool) -> Compared:
    """Times of an Admit: quiet ones as the floor, those beside updates as the product."""
    log = directory / "log"
    plugins = directory / "dp"
    config = write_document(
        directory,
        devices=[],
        devicePlugins={"mode": "host", "directory": str(plugins), "pluginsRegistry": ""},
    )
    names = [service.value for service in CORE_SERVICES] if processes else ["all"]
    with running({name: service_command(name, config) for name in names}, log):
        until_serving([directory / "run" / f"{service}.sock" for service in CORE_SERVICES], log)
        with _updating(plugins, log) as updating:
            channel = open_channel(directory / "run" / "admission.sock")
            stub: ad_grpc.AdmissionAsyncStub = ad_grpc.AdmissionStub(channel)
            admissions = Admissions(stub)
            await until_decided(admissions.step)
            await _hold(stub)
            for _ in range(warm_up):
                await admissions.step()
            compared = await _in_turns(admissions, updating, samples)
            await channel.close()
            return compared


async def _in_turns(
    admissions: Admissions, updating: subprocess.Popen[str], samples: int
) -> Compared:
    taken: dict[str, list[float]] = {"off": [], "on": []}
    while min(len(times) for times in taken.values()) < samples:
        for word, times in taken.items():
            _tell(updating, word)
            ends = time.monotonic() + WINDOW_SECONDS
            while time.monotonic() < ends:
                times.append(await admissions.step() * 1000)
    return Compared(*map(Times.of, taken.values()))


async def _hold(stub: ad_grpc.AdmissionAsyncStub) -> None:
    """Have pods run that hold devices of every resource."""
    for number in range(HELD):
        answer = await stub.Admit(ad.AdmitRequest(pod=_holder(f"holder-{number}")))
        if answer.verdict != pb.VERDICT_ADMITTED:
            raise Unmeasurable(f"a pod is refused: {answer}")


def _holder(uid: str) -> core_pb2.Pod:
    """A pod with one device of each resource, and CPUs that it shares."""
    amounts = {resource_of(number): "1" for number in range(RESOURCES)}
    resources = {"limits": amounts, "requests": amounts}
    return pod_from_json(
        {
            "metadata": {"name": uid, "namespace": "default", "uid": uid},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
        }
    )


@contextmanager
def _updating(directory: Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """The plugins, once all of them are registered."""
    command = [sys.executable, "-m", "tests.bench.updating_plugins", str(directory)]
    with (
        log.open("ab") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            cwd=ROOT,
        ) as process,
    ):
        if process.stdout is None or process.stdout.readline() != "registered\n":
            raise Unmeasurable(f"plugins do not register:\n{log.read_text()}")
        yield process


def _tell(process: subprocess.Popen[str], word: str) -> None:
    if process.stdin is None:
        raise Unmeasurable("plugins cannot be told anything")
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
