"""How much memory services hold: PSS of each of the five with all running, and of all in one.

PSS counts a page that processes share by its fraction, so five processes together hold what
their figures add up to. Separate from `start_bench`, because memory is read after some work
and without a clock.
"""

from __future__ import annotations

import time
from pathlib import Path

import grpc
from tests.bench.figures import Figure, at_most
from tests.bench.processes import (
    WAIT_SECONDS,
    Unmeasurable,
    running,
    service_command,
    until_serving,
)
from tests.integration.node_document import pod, write_document

from numalign.config.settings import CORE_SERVICES, Service
from numalign.rpc.channel import socket_target
from numalign.v1 import admission_pb2 as ad
from numalign.v1.admission_pb2_grpc import AdmissionStub

SERVICE_MB, ALL_IN_ONE_MB = 40.0, 60.0
ADMISSIONS = 20


def measure(directory: Path) -> list[Figure]:
    """Megabytes (10^6 bytes) after some admissions and releases, with nothing exported.

    Raises Unmeasurable where a service does not come up.
    """
    five = _measured(directory / "five", [service.value for service in CORE_SERVICES])
    one = _measured(directory / "one", ["all"])
    return [
        Figure(
            name=f"PSS, {name}", unit="MB", value=megabytes, target=at_most(limit), portable=True
        )
        for measured, limit in ((five, SERVICE_MB), (one, ALL_IN_ONE_MB))
        for name, megabytes in measured.items()
    ]


def pss_megabytes(pid: int) -> float:
    """The proportional set size of a process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"/proc/{pid}/smaps_rollup has no Pss")


def _measured(directory: Path, processes: list[str]) -> dict[str, float]:
    directory.mkdir()
    config = write_document(directory)
    log = directory / "log"
    sockets = {service: directory / "run" / f"{service}.sock" for service in CORE_SERVICES}
    with running({name: service_command(name, config) for name in processes}, log) as pids:
        until_serving(list(sockets.values()), log)
        _work(sockets[Service.ADMISSION])
        return {name: pss_megabytes(pid) for name, pid in pids.items()}


def _work(socket: Path) -> None:
    with grpc.insecure_channel(socket_target(socket)) as channel:
        admission = AdmissionStub(channel)
        _until_connected(admission)
        for number in range(ADMISSIONS):
            name = f"pod-{number}"
            admission.Admit(ad.AdmitRequest(pod=pod(name)))
            admission.Release(ad.ReleaseRequest(pod_uid=name))


def _until_connected(admission: AdmissionStub) -> None:
    """Ask until the services, which were started all at once, have found each other."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            admission.Admit(ad.AdmitRequest(pod=pod("first"), dry_run=True))
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                raise Unmeasurable(f"no admission: {error}") from error
            time.sleep(0.05)
        else:
            return
