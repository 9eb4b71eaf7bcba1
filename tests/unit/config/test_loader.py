"""Loading from files: defaults of the user, paths, overrides, and the machine that is meant."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from numalign.config.defaults import Directories, default_directories
from numalign.config.loader import load_settings
from numalign.config.machine_source import memory_capacity, read_machine
from numalign.config.settings import Compatibility, MachineFile, MachineInline, MachineRoot
from numalign.errors import ConfigError
from numalign.machine.machine_file import write_machine_file
from numalign.model.machine import Machine, NumaNode
from numalign.model.quantity import Quantity

MACHINE = Machine(numa_nodes=(NumaNode(id=0, memory_bytes=1000), NumaNode(id=1, memory_bytes=24)))


@pytest.mark.parametrize(
    ("env", "is_root", "runtime", "state"),
    [
        pytest.param({}, True, "/run/numalign", "/var/lib/numalign", id="root"),
        pytest.param(
            {"HOME": "/root", "XDG_RUNTIME_DIR": "/run/user/0"},
            True,
            "/run/numalign",
            "/var/lib/numalign",
            id="root has the system directories",
        ),
        pytest.param(
            {"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/7"},
            False,
            "/run/user/7/numalign",
            "/home/a/.local/state/numalign",
            id="a user with a session",
        ),
        pytest.param(
            {"HOME": "/home/a"},
            False,
            "/home/a/.local/state/numalign/run",
            "/home/a/.local/state/numalign",
            id="a user without a session",
        ),
        pytest.param(
            {"HOME": "/home/a", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "relative"},
            False,
            "/s/numalign/run",
            "/s/numalign",
            id="a relative XDG directory is ignored",
        ),
        pytest.param({}, False, None, None, id="nobody"),
    ],
)
def test_default_directories(
    env: Mapping[str, str], is_root: bool, runtime: str | None, state: str | None
) -> None:
    assert default_directories(env, is_root) == Directories(
        runtime=None if runtime is None else Path(runtime),
        state=None if state is None else Path(state),
    )


def test_no_file_is_an_empty_one() -> None:
    settings = load_settings(None, {}, True)

    assert settings.compatibility is Compatibility.SAFE
    assert settings.state_directory == Path("/var/lib/numalign")


def test_without_any_directory_they_must_be_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(None, {}, False)

    assert str(refused.value).splitlines() == [
        "numalign.runtimeDirectory: must be given: neither HOME nor an XDG directory is set",
        "numalign.stateDirectory: must be given: neither HOME nor an XDG directory is set",
    ]
    overrides = {"runtimeDirectory": str(tmp_path / "r"), "stateDirectory": str(tmp_path / "s")}
    assert load_settings(None, {}, False, overrides).state_directory == tmp_path / "s"


def test_overrides_win_and_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("numalign: {compatibility: kubelet, owner: a}\n")
    settings = load_settings(path, {}, True, {"compatibility": "safe"})

    assert (settings.compatibility, settings.owner) == (Compatibility.SAFE, "a")
    with pytest.raises(ConfigError, match=r"numalign\.compatibility: must be one of"):
        load_settings(path, {}, True, {"compatibility": "x"})


def test_overrides_do_not_hide_a_section_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("numalign: [1]\n")

    with pytest.raises(ConfigError, match="numalign: must be a mapping, not a list"):
        load_settings(path, {}, True, {"owner": "a"})


def test_files_beside_the_configuration(tmp_path: Path) -> None:
    write_machine_file(tmp_path / "machine.json", MACHINE)
    (tmp_path / "devices.yaml").write_text("- resource: example.com/gpu\n")
    path = tmp_path / "config.yaml"
    path.write_text(
        "evictionHard: {memory.available: 50%}\n"
        "numalign: {machine: {file: machine.json}, devices: {file: devices.yaml}}\n"
    )
    settings = load_settings(path, {}, True)

    assert settings.machine == MachineFile(tmp_path / "machine.json")
    assert [resource.resource for resource in settings.devices] == ["example.com/gpu"]
    assert settings.memory.node_allocatable_reservation == {"memory": Quantity.parse("512")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("- a\n", "config.yaml: must be a mapping", id="no mapping"),
        pytest.param("a: [\n", "config.yaml: line 2, column 1: while parsing", id="no YAML"),
        pytest.param("maxPods: 1\nmaxPods: 2\n", 'the key "maxPods" stands twice', id="twice"),
        pytest.param(
            "numalign: {devices: {file: none.yaml}}\n",
            "none.yaml: cannot be read: No such file or directory",
            id="no inventory",
        ),
    ],
)
def test_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)

    with pytest.raises(ConfigError) as refused:
        load_settings(path, {}, True)

    assert message in str(refused.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load_settings(tmp_path / "none.yaml", {}, True)


def test_machine_of_each_source(tmp_path: Path) -> None:
    write_machine_file(tmp_path / "machine.yaml", MACHINE)
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "meminfo").write_text("MemTotal: 3 kB\n")
    (proc / "cpuinfo").write_text("processor : 0\n")

    assert read_machine(MachineInline(MACHINE)).machine == MACHINE
    assert read_machine(MachineFile(tmp_path / "machine.yaml")).machine == MACHINE
    assert read_machine(MachineRoot(tmp_path)).machine.cpu_count() == 1
    assert memory_capacity(MachineInline(MACHINE)) == 1024
    assert memory_capacity(MachineFile(tmp_path / "machine.yaml")) == 1024
    assert memory_capacity(MachineRoot(tmp_path)) == 3 * 1024


def test_loading_is_quick(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "topologyManagerPolicy: restricted\nkubeReserved: {cpu: '1', memory: 1Gi}\n"
        "numalign: {sockets: {mode: '0600'}, log: {level: debug}}\n"
    )

    def seconds() -> float:
        """Of this thread alone: a busy machine takes its time from others."""
        start = time.thread_time()
        load_settings(path, {}, True)
        return time.thread_time() - start

    assert min(seconds() for _ in range(5)) < 0.03
