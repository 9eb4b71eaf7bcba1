"""What is done in the virtual machine. Everything seen goes to the host, which judges it.

Runs as a program, as the machine's only job.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from numalign.machine.discover import discover
from numalign.machine.schema import document_of_machine
from numalign.model.cpu_set import CpuSet
from numalign_agent.cgroups.enforcer import CgroupEnforcer
from numalign_agent.cgroups.errors import CgroupError
from numalign_agent.cgroups.placer import CgroupPlacer
from numalign_agent.cgroups.plan import Partition, WantedGroup
from numalign_agent.cgroups.quota import lift_quotas
from numalign_agent.cgroups.settings import CgroupSettings
from numalign_agent.cgroups.tree import CgroupTree
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import Placement, RunnerFailed
from numalign_agent.runners.process.runner import ProcessRunner
from numalign_client.blocking import AdmissionClient

NODES = Path("/sys/devices/system/node")
_LAST_CPU = Path("/sys/devices/system/cpu/cpu15/online")
MIB = 1 << 20
NUMALIGN = Path(sys.executable).with_name("numalign")
WORK = Path("/run/e2e")
SOCKET = WORK / "admission.sock"
WAIT_SECONDS = 120

TOUCHES = Path(__file__).with_name("touches.py")


def main() -> None:
    report: dict[str, Any] = {}
    for name, step in STEPS.items():
        began = time.monotonic()
        try:
            report[name] = step()
        except Exception as error:
            report[name] = {"failed": f"{type(error).__name__}: {error}"}
        sys.stdout.write(f"{name}: {time.monotonic() - began:.1f} s\n")
        sys.stdout.flush()
    os.write(3, json.dumps(report).encode() + b"\n")


def discovery() -> Any:
    """The machine as the services see it, after huge pages were moved between nodes."""
    for node, count in ((0, 4), (3, 20)):
        _pages_of(node).write_text(str(count))
    return document_of_machine(discover().machine)


def huge_pages() -> Any:
    return [int(_pages_of(node).read_text()) for node in range(4)]


def groups() -> Any:
    """A group that is set, joined, and set anew while a process is in it."""
    tree = CgroupTree()
    enforcer = CgroupEnforcer(tree)
    group = PurePosixPath("/outer/inner/one")
    enforcer.apply(group, _wanted("4-5,12-13", "1,3", hugepages={"2MB": 8 * MIB}))
    seen: dict[str, Any] = {"files": _files(tree, group)}
    with _process_in(tree, group) as pid:
        seen["joined"] = _allowed(pid)
        enforcer.apply(group, _wanted("0-1", "0"))
        seen["moved"] = _allowed(pid)
        # A CPU that is offline is one that the kernel takes all the same.
        _LAST_CPU.write_text("0")
        seen["taken"] = _refusal(lambda: tree.write(group, "cpuset.cpus", "0-1,15"))
        tree.write(group, "cpuset.cpus", "0-1")
        seen["refused"] = _refusal(lambda: enforcer.apply(group, _wanted("0-1,15", "0")))
        _LAST_CPU.write_text("1")
        seen["after a refusal"] = _allowed(pid)
        seen["removed too early"] = _refusal(lambda: tree.remove(group))
        seen["killed"] = tree.kill(group)
    tree.remove(group)
    seen["left"] = tree.has(group)
    return seen


def refusals() -> Any:
    """What the kernel says to what cannot be, in our words."""
    tree = CgroupTree()
    enforcer = CgroupEnforcer(tree)
    narrow, below = PurePosixPath("/narrow"), PurePosixPath("/narrow/below")
    enforcer.apply(narrow, _wanted("2-3", "0"))
    seen = {
        "not of the group above": _refusal(lambda: enforcer.apply(below, _wanted("3-4", "0"))),
        "no such CPU": _refusal(lambda: enforcer.apply(below, _wanted("3,99", "0"))),
        "no such node": _refusal(lambda: enforcer.apply(below, _wanted("3", "9"))),
        "far beyond": _refusal(lambda: tree.write(narrow, "cpuset.cpus", "99999999")),
        "no list": _refusal(lambda: tree.write(narrow, "cpuset.cpus", "x")),
        "no file": _refusal(lambda: tree.write(narrow, "cpuset.none", "1")),
        "left": tree.has(below),
    }
    tree.make(PurePosixPath("/busy"))
    with _process_in(tree, PurePosixPath("/busy")):
        seen["processes"] = _refusal(
            lambda: enforcer.apply(PurePosixPath("/busy/below"), _wanted("1", "0", hugepages={}))
        )
    return seen


def partitions() -> Any:
    """CPUs that the kernel itself keeps from the other groups."""
    tree = CgroupTree()
    enforcer = CgroupEnforcer(tree)
    apart = _wanted("8-9", "2", partition=Partition.ISOLATED)
    group = PurePosixPath("/apart")
    enforcer.apply(group, apart)
    seen = {"root": tree.read(PurePosixPath("/"), "cpuset.cpus.effective")}
    enforcer.remove(group)
    seen["given back"] = tree.read(PurePosixPath("/"), "cpuset.cpus.effective")
    seen["too deep"] = _refusal(lambda: enforcer.apply(PurePosixPath("/member/apart"), apart))
    return seen


def quotas() -> Any:
    """CFS quotas of a pod and its container are found and lifted."""
    tree = CgroupTree()
    tree.write(PurePosixPath("/"), "cgroup.subtree_control", "+cpu")
    paths = [PurePosixPath(path) for path in ("/kubepods", "/kubepods/podx", "/kubepods/podx/c")]
    for path in paths:
        tree.make(path)
        if path != paths[-1]:
            tree.write(path, "cgroup.subtree_control", "+cpu")
    for path in paths[1:]:
        tree.write(path, "cpu.max", "50000 100000")
    first, second = (lift_quotas(tree, ["/kubepods/podx/c"]) for _ in range(2))
    return {
        "lifted": first.lifted,
        "again": second.lifted,
        "now": [tree.read(path, "cpu.max") for path in paths[1:]],
    }


def runs() -> Any:
    """Commands under `numalign run`: where they are, and where the memory is that they touch."""
    seen: dict[str, Any] = {}
    asked = ("--cpus", "3", "--memory", "32Mi", "--hugepages-2Mi", "8Mi")
    with _run(*asked, name="first") as first, _run(*asked, name="second") as second:
        for name, run in (("first", first), ("second", second)):
            assert run.stdout is not None
            seen[name] = json.loads(run.stdout.readline())
        with AdmissionClient(SOCKET) as client:
            for record in client.list_admissions(owner="run", timeout=WAIT_SECONDS).admissions:
                (allocation,) = record.allocations
                seen[record.name]["granted"] = {
                    "cpus": allocation.cpus,
                    "memory": {b.resource: list(b.numa_nodes) for b in allocation.memory},
                }
        second.kill()
        first.communicate(timeout=WAIT_SECONDS)
        seen["ended with"] = first.returncode
    _until(lambda: not _held())
    seen["groups left"] = [path.name for path in Path("/sys/fs/cgroup/numalign").glob("run-*")]
    return seen


def by_affinity() -> Any:
    """The same where there is nothing but affinity and numactl."""
    with _run("--cpus", "2", "--memory", "32Mi", "--enforce", "affinity", name="affine") as run:
        assert run.stdout is not None
        seen: dict[str, Any] = json.loads(run.stdout.readline())
        run.communicate(timeout=WAIT_SECONDS)
    return seen


def process_runner() -> Any:
    """A container of the agent's process runner, from its start to its end."""
    return asyncio.run(_process_runner())


async def _process_runner() -> Any:
    placer = CgroupPlacer(CgroupSettings())
    placer.check()
    runner = await ProcessRunner.open(WORK / "containers", WORK / "logs", placer)
    command = ["/bin/sh", "-c", "sleep 1000 & exec sleep 1000"]
    pod = AgentPod(
        {
            "metadata": {"uid": "u", "name": "pod", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "command": command}]},
        }
    )
    first = Placement(cpus="6-7", exclusive_cpus=True, mems="1", hugepages={})
    container = await runner.create_container(pod, "c", 0, first)
    await runner.start_container(container)
    group = placer.group(container)
    tree = CgroupTree()

    def where() -> list[list[str]]:
        return [_allowed(int(pid)) for pid in tree.read(group, "cgroup.procs").split()]

    await asyncio.to_thread(_until, lambda: len(where()) == 2)
    seen: dict[str, Any] = {"started": where(), "huge": tree.read(group, "hugetlb.2MB.max")}
    await runner.update_placement(container, Placement(cpus="9", mems="2"))
    seen["moved"] = where()
    mine = Placement(cpus="9", mems="2")
    tree.write(group, "cpuset.cpus", "0-3")
    seen["changed"] = [await runner.put_back(container, mine), where()]
    pid = min(map(int, tree.read(group, "cgroup.procs").split()))
    tree.fetch(PurePosixPath("/"), pid)
    taken_out = await runner.put_back(container, mine)
    seen["taken out"] = [taken_out.replace(str(pid), "PID"), where()]
    await runner.stop_container(container, 1.0)
    await runner.remove_container(container)
    seen["left"] = tree.has(group)
    try:
        await runner.create_container(pod, "c", 1, Placement(cpus="40"))
    except RunnerFailed as error:
        seen["refused"] = str(error)
    await runner.close()
    return seen


def services() -> Any:
    """Start the services over the machine as it is; they go on while other steps are done."""
    WORK.mkdir()
    config = WORK / "numalign.yaml"
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": "single-numa-node",
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
        "memoryManagerPolicy": "Static",
        "evictionHard": {"memory.available": "50Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "50Mi"}}],
        "numalign": {
            "runtimeDirectory": str(WORK),
            "stateDirectory": str(WORK / "state"),
            "log": {"level": "warning", "format": "console"},
        },
    }
    config.write_text(yaml.safe_dump(document))
    subprocess.Popen([NUMALIGN, "serve", "all", "--config", config], stdout=sys.stderr)
    return None


def services_serve() -> Any:
    _until(SOCKET.exists)
    return None


STEPS: dict[str, Callable[[], Any]] = {
    "huge pages at first": huge_pages,
    "discovery": discovery,
    "huge pages": huge_pages,
    "services": services,
    "groups": groups,
    "refusals": refusals,
    "partitions": partitions,
    "quotas": quotas,
    "process runner": process_runner,
    "services serve": services_serve,
    "runs": runs,
    "by affinity": by_affinity,
}


def _wanted(cpus: str, mems: str, **more: Any) -> WantedGroup:
    return WantedGroup(cpus=CpuSet.parse(cpus), mems=CpuSet.parse(mems), **more)


def _pages_of(node: int) -> Path:
    return NODES / f"node{node}" / "hugepages" / "hugepages-2048kB" / "nr_hugepages"


def _files(tree: CgroupTree, group: PurePosixPath) -> dict[str, str]:
    names = ("cpuset.cpus", "cpuset.cpus.effective", "cpuset.mems.effective", "hugetlb.2MB.max")
    return {name: tree.read(group, name) for name in names}


def _allowed(pid: int) -> list[str]:
    wanted = ("Cpus_allowed_list:", "Mems_allowed_list:")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return [line.split()[1] for line in lines if line.startswith(wanted)]


def _refusal(do: Callable[[], object]) -> str:
    try:
        do()
    except CgroupError as error:
        return str(error)
    return ""


@contextmanager
def _process_in(tree: CgroupTree, group: PurePosixPath) -> Iterator[int]:
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        tree.write(group, "cgroup.procs", str(process.pid))
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def _run(*arguments: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """`numalign run` of a program that says what it touched, and ends at the end of its input."""
    command = [
        str(NUMALIGN), "run", "--socket", str(SOCKET), "--timeout", str(WAIT_SECONDS),
        "--name", name, *arguments,
        "--", sys.executable, "-I", str(TOUCHES),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


def _held() -> list[str]:
    with AdmissionClient(SOCKET) as client:
        answer = client.list_admissions(owner="run", timeout=WAIT_SECONDS)
    return [record.pod_uid for record in answer.admissions]


def _until(so: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.1)


if __name__ == "__main__":
    main()
