"""The plugin against a real containerd with runc: what Admission grants is what processes get."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from grpc import aio
from tests.e2e.containerd import NEWER_SUITE, USUAL_SUITE, check_machine
from tests.e2e.node import CONNECTED, Node
from tests.integration.fake_api.server import fake_api_server

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

ALL, SHARED, EXCLUSIVE = "0-1", "0", "1"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test runs with the usual containerd, and those that say so with the newer one too."""
    newer = metafunc.definition.get_closest_marker("newer_containerd") is not None
    suites = [USUAL_SUITE, NEWER_SUITE] if newer else [USUAL_SUITE]
    metafunc.parametrize("runtime", suites, indirect=True, scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runtime(request: pytest.FixtureRequest) -> AsyncIterator[Node]:
    """One containerd for all tests; its directory has a short name for the sockets' sake."""
    check_machine()
    directory = Path(tempfile.mkdtemp(prefix="nae2e-", dir="/tmp"))
    try:
        async with fake_api_server() as api:
            api.kubeconfig(directory / "kubeconfig")
            node = Node(directory, api, request.param)
            await node.containerd.start()
            try:
                await node.containerd.import_images()
                yield node
            finally:
                try:
                    await node.stop_programs()
                finally:
                    await node.containerd.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest_asyncio.fixture(loop_scope="module")
async def tidied(runtime: Node) -> AsyncIterator[Node]:
    """The node without pods, before and after."""
    runtime.begin()
    yield runtime
    sys.stdout.write(runtime.told())  # shown for a test that failed
    await runtime.tidy()


@pytest_asyncio.fixture(loop_scope="module")
async def node(tidied: Node) -> Node:
    """Neither services nor plugin run, and nothing of them is left."""
    await tidied.stop_programs()
    tidied.configure()
    return tidied


@pytest_asyncio.fixture(loop_scope="module")
async def served(tidied: Node) -> Node:
    """Services and plugin run, perhaps for a while already."""
    if not tidied.serves():
        await tidied.stop_programs()
        tidied.configure()
        await tidied.start_services()
        await tidied.start_plugin()
    return tidied


@pytest.mark.newer_containerd
async def test_exclusive_cpus_are_seen_in_the_process(served: Node) -> None:
    shared = await served.run_whole_pod("shared")
    before = await served.cpus(shared)
    pinned = await served.run_whole_pod("pinned", cpu=1)

    assert before == ALL
    assert await served.cpus(pinned) == EXCLUSIVE
    assert await served.cpus(shared) == SHARED


@pytest.mark.newer_containerd
async def test_a_refusal_is_seen_by_who_asked_and_judged_anew(served: Node) -> None:
    first = await served.run_pod("first", cpu=1)
    await served.run_container(first, cpu=1)
    with pytest.raises(aio.AioRpcError) as refused:
        await served.run_pod("second", cpu=1)
    uid = served.api.store.get("pods", "default", "second")["metadata"]["uid"]
    held = await served.admitted()
    await served.end_pod(first)
    again = await served.run_sandbox("second", uid, 1, attempt=1)
    container = await served.run_container(again, cpu=1)

    assert "TopologyAffinityError: Resources cannot be allocated with Topology locality" in str(
        refused.value.details()
    )
    assert set(held) == {first.uid}
    assert await served.cpus(container) == EXCLUSIVE


async def test_a_static_pod_is_never_kept_from_starting(served: Node) -> None:
    await served.run_whole_pod("first", cpu=1)
    static = await served.run_pod(
        "static",
        cpu=1,
        annotations={"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "abc"},
    )
    container = await served.run_container(static, cpu=1)
    await served.until(lambda: bool(events(served)), "the refusal is an event")

    assert await served.cpus(container) == SHARED
    assert "pod shared" in served.plugin.said()
    message = (
        "Resources cannot be allocated with Topology locality (it is a static pod); "
        "the pod runs on the shared CPUs"
    )
    assert events(served) == [("static", "TopologyAffinityError", message)]


async def test_a_pod_of_no_known_spec_is_estimated(served: Node) -> None:
    guaranteed = await served.run_whole_pod("unknown", cpu=1, known=False)
    on = await served.cpus(guaranteed)
    burstable = await served.run_whole_pod("little", known=False)
    beside = await served.cpus(burstable)
    pod = served.pod("unknown")
    held = await served.admitted()
    await served.end_pod(pod)
    await served.until_admitted(set())

    assert held == {f"estimated:{pod.uid}:app": {"app": "1"}}
    assert (on, beside) == (EXCLUSIVE, SHARED)


async def test_what_somebody_else_has_set_stays(node: Node) -> None:
    """A cpuset that CRI asks for, before the plugin is there and after."""
    early = await node.run_pod("early")
    first = await node.run_container(early, cpus="1")
    await node.start_services()
    await node.start_plugin()
    late = await node.run_pod("late")
    second = await node.run_container(late, cpus="1")
    ours = await node.run_whole_pod("ours", cpu=1)
    await asyncio.sleep(2)  # two looks of the plugin

    assert await node.cpus(first) == "1"
    assert await node.cpus(second) == "1"
    assert await node.cpus(ours) == EXCLUSIVE


@pytest.mark.newer_containerd
async def test_killed_and_restarted(served: Node) -> None:
    """Fail-open while the plugin is gone, and put right as soon as it is back."""
    shared = await served.run_whole_pod("shared")
    pinned = await served.run_whole_pod("pinned", cpu=1)
    await served.plugin.stop(signal.SIGKILL)
    missed = await served.run_whole_pod("missed")
    unpinned = await served.cpus(missed)
    gone = served.pod("pinned")
    await served.end_pod(gone)
    came = await served.run_whole_pod("came", cpu=1)
    await served.start_plugin()
    await served.until_on(missed, SHARED)
    await served.until_on(came, EXCLUSIVE)
    await served.until(
        lambda: (
            {name for name, reason, _ in events(served) if reason == "ContainerUnpinned"}
            == {"missed", "came"}
        ),
        "who ran unpinned is shown",
    )

    assert pinned
    assert unpinned == ALL
    assert await served.cpus(shared) == SHARED
    assert gone.uid not in await served.admitted()


@pytest.mark.newer_containerd
async def test_a_hung_admission(node: Node) -> None:
    """The runtime does not wait longer than it does for any plugin, and the pod is not lost."""
    await node.containerd.stop()
    await node.containerd.start(patience="2s")
    node.configure(requestTimeout="2s")
    await node.start_services()
    await node.start_plugin()
    shared = await node.run_whole_pod("shared")
    node.services.send(signal.SIGSTOP)
    late = await node.run_whole_pod("late", cpu=1)
    meanwhile = await node.cpus(late)
    node.services.send(signal.SIGCONT)
    await node.until_on(late, EXCLUSIVE)
    await node.until_on(shared, SHARED)
    await node.stop_programs()
    await node.containerd.stop()
    await node.containerd.start()

    assert meanwhile == ALL  # the shared pool of that moment
    assert CONNECTED not in node.plugin.said(), "the runtime gave the plugin up"


async def test_admission_restarted(served: Node) -> None:
    pinned = await served.run_whole_pod("pinned", cpu=1)
    await served.services.stop(signal.SIGKILL)
    late = await served.run_whole_pod("late")
    meanwhile = await served.cpus(late)
    await served.start_services()
    await served.until_admitted({served.pod("pinned").uid, served.pod("late").uid})
    with pytest.raises(aio.AioRpcError, match="TopologyAffinityError"):
        await served.run_pod("second", cpu=1)

    assert meanwhile == SHARED
    assert await served.cpus(pinned) == EXCLUSIVE


@pytest.mark.newer_containerd
async def test_the_runtime_restarted(served: Node) -> None:
    shared = await served.run_whole_pod("shared")
    await served.containerd.stop(signal.SIGKILL)
    await served.containerd.start()
    await served.until(lambda: CONNECTED in served.plugin.said(), "the plugin is connected again")
    pinned = await served.run_whole_pod("pinned", cpu=1)

    assert await served.cpus(pinned) == EXCLUSIVE
    assert await served.cpus(shared) == SHARED


async def test_pods_first_numalign_later(node: Node) -> None:
    """After a reboot: the oldest pod gets the CPU, who does not fit runs on the shared ones."""
    containers = [await node.run_whole_pod(name, cpu=cpu) for name, cpu in BOOTED]
    before = [await node.cpus(container) for container in containers]
    await node.start_plugin_without_services()
    await node.start_services()
    for container, (_, _), cpus in zip(containers, BOOTED, BOOTED_ON, strict=True):
        await node.until_on(container, cpus)
    await node.until(
        lambda: (
            {(n, r) for n, r, _ in events(node) if r != "ContainerUnpinned"}
            == {("young", "TopologyAffinityError")}
        ),
        "who did not fit is shown",
    )

    assert before == [ALL, ALL, ALL]
    assert set(await node.admitted()) == {node.pod("old").uid, node.pod("none").uid}


BOOTED = (("old", 1), ("young", 1), ("none", 0))
BOOTED_ON = (EXCLUSIVE, SHARED, SHARED)


@pytest.mark.newer_containerd
async def test_a_cpuset_changed_by_hand_is_put_back(served: Node) -> None:
    pinned = await served.run_whole_pod("pinned", cpu=1)
    path = served.cpuset_of(served.pod("pinned"), pinned)
    path.write_text("0-1")
    strayed = await served.cpus(pinned)
    await served.until_on(pinned, EXCLUSIVE)

    assert strayed == ALL
    assert [event[:2] for event in events(served)] == [("pinned", "ContainerUnpinned")]


async def test_a_place_that_the_kernel_refuses_is_told(node: Node) -> None:
    """The group above the container has only the shared CPU: there is no way to the other one."""
    narrow = await node.run_whole_pod("narrow", cpu=1)
    own = node.cpuset_of(node.pod("narrow"), narrow)
    group = own.parent.parent
    for below in (*filter(Path.is_dir, group.iterdir()), group):
        (below / own.name).write_text(SHARED)
    await node.start_services()
    await node.start_plugin()
    await node.until(
        lambda: "PlacementFailed" in [reason for _, reason, _ in events(node)],
        "the refusal is shown",
    )

    assert await node.cpus(narrow) == SHARED
    assert node.pod("narrow").uid in await node.admitted()


async def test_an_update_by_the_kubelet_leaves_the_place(served: Node) -> None:
    pinned = await served.run_whole_pod("pinned", cpu=1)
    await served.containerd.cri.update(pinned, cpu_shares=2048, cpuset_cpus="0-1")

    assert await served.cpus(pinned) == EXCLUSIVE


async def test_a_pod_that_ended_makes_room_at_once(served: Node) -> None:
    """A finished Job: its sandbox is stopped and stays, what it held does not."""
    await served.run_whole_pod("job", cpu=1)
    await served.containerd.cri.stop_sandbox(served.pod("job").sandbox)
    following = await served.run_whole_pod("next", cpu=1)

    assert await served.cpus(following) == EXCLUSIVE
    assert set(await served.admitted()) == {served.pod("next").uid}


@asynccontextmanager
async def file_devices(node: Node, said: str) -> AsyncIterator[str]:
    """numalign hosts the sample plugin, whose device is a file that says this; the resource."""
    sockets, devices = node.directory / "plugins", node.directory / "devices"
    for path in (sockets, devices):
        path.mkdir(exist_ok=True)
    (devices / "one").write_text(said)
    hosted = {"mode": "host", "directory": str(sockets), "pluginsRegistry": ""}
    node.configure({"devicePlugins": hosted}, injectDevices=True)
    await node.start_services()
    await node.start_plugin()
    plugin = node.device_plugin(sockets, devices)
    await plugin.start()
    try:
        yield await node.until_offered("example.com/file")
    finally:
        await plugin.stop()


@pytest.mark.newer_containerd
async def test_devices_of_a_plugin_reach_the_container(node: Node) -> None:
    """numalign hosts the device plugins: what one wants changed is in the container."""
    null = node.directory / "null"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    async with file_devices(node, f"node: {null}\n") as resource:
        pod = await node.run_pod("holder", cpu=1, devices={resource: "1"})
        container = await node.run_container(pod, cpu=1)
        inside = node.containerd.cri.run_inside
        environment = await inside(container, "cat", "/proc/1/environ")
        mounted = await inside(container, "cat", "/var/run/devices/one")
        nothing = await inside(container, "cat", str(null))

    assert "EXAMPLE_COM_FILE=one" in environment.split("\0")
    assert mounted == f"node: {null}\n"
    assert nothing == ""
    assert await node.cpus(container) == EXCLUSIVE


@pytest.mark.newer_containerd
async def test_cdi_devices_reach_the_container_or_it_is_refused(node: Node) -> None:
    specs = node.directory / "cdi"
    specs.mkdir(exist_ok=True)
    card = {"name": "a", "containerEdits": {"env": ["CARD=a"]}}
    spec = {"cdiVersion": "0.5.0", "kind": "example.com/card", "devices": [card]}
    (specs / "card.json").write_text(json.dumps(spec))
    async with file_devices(node, "cdi: example.com/card=a\n") as resource:
        pod = await node.run_pod("holder", cpu=1, devices={resource: "1"})
        if node.containerd.version < (2, 1):
            with pytest.raises(aio.AioRpcError) as refused:
                await node.run_container(pod, cpu=1)
            assert "container app needs CDI device example.com/card=a" in str(
                refused.value.details()
            )
            return
        container = await node.run_container(pod, cpu=1)
        environment = await node.containerd.cri.run_inside(container, "cat", "/proc/1/environ")

    assert "CARD=a" in environment.split("\0")
    assert await node.cpus(container) == EXCLUSIVE


async def test_nri_that_is_off(node: Node) -> None:
    await node.start_services()
    await node.containerd.stop()
    await node.containerd.start(nri=False)
    await node.plugin.start()
    await node.until(
        lambda: "no container runtime with NRI" in node.plugin.said(), "the plugin says so"
    )
    alive = node.plugin.process is not None and node.plugin.process.returncode is None
    waits = await node.ready()
    await node.containerd.stop()
    await node.containerd.start()
    await node.until(lambda: CONNECTED in node.plugin.said(), "the plugin is connected")

    assert alive
    assert waits[0] == 500
    assert "no runtime with NRI at" in waits[1]
    assert await node.ready() == (200, "ok")


async def test_thirty_pods_come_and_go(served: Node) -> None:
    """Never are an exclusive CPU and a shared container together, and nothing is left over."""
    turns = asyncio.Semaphore(4)
    together: list[str] = []
    refusals: list[str] = []

    async def live(number: int) -> None:
        async with turns:
            cpu = 1 if number % 5 == 0 else 0
            try:
                container = await served.run_whole_pod(f"pod-{number}", cpu=cpu)
            except aio.AioRpcError as error:
                refusals.append(str(error.details()))
                return
            found = await served.cpus(container)
            if cpu and found != EXCLUSIVE:
                together.append(f"pod-{number} on {found}")
            await served.end_pod(served.pod(f"pod-{number}"))

    watched = await served.run_whole_pod("watched")
    await asyncio.gather(*(live(number) for number in range(30)))
    await served.until_on(watched, ALL)
    await served.until_admitted({served.pod("watched").uid})

    assert together == []
    assert all("TopologyAffinityError" in refusal for refusal in refusals), refusals
    assert CONNECTED not in served.plugin.said(), "the runtime gave the plugin up"


def events(node: Node) -> list[tuple[str, str, str]]:
    """Pod, reason and message of every event in the API."""
    return [
        (event["involvedObject"]["name"], event["reason"], event["message"])
        for event in node.api.store.all("events")
    ]
