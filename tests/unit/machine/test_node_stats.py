"""The node's memory, processes and security switches from captured files."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.admission.handlers.eviction_signals import FsStats, MemoryStats, NodeStats
from numalign.machine.host_security import app_armor_enabled, can_limit_swap, kernel_version
from numalign.machine.node_stats import read_node_stats

_MEMINFO = """MemTotal:       1000 kB
MemFree:         300 kB
Inactive:        150 kB
Inactive(file):  100 kB
"""


def _write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_what_is_not_there_is_unknown(tmp_path: Path) -> None:
    """EVI-8."""
    assert read_node_stats(tmp_path, Path("/var/lib/kubelet"), None) == NodeStats()


def test_memory_and_processes(tmp_path: Path) -> None:
    """EVI-8."""
    _write(tmp_path, "proc/meminfo", _MEMINFO)
    _write(tmp_path, "proc/loadavg", "0.1 0.2 0.3 2/345 6789\n")
    _write(tmp_path, "proc/sys/kernel/pid_max", "4194304\n")
    _write(tmp_path, "proc/sys/kernel/threads-max", "1000\n")
    stats = read_node_stats(tmp_path, Path("/none"), None)

    assert stats.memory == MemoryStats(available=400 << 10, working_set=600 << 10)
    assert (stats.max_pid, stats.processes) == (1000, 345)


def test_filesystems(tmp_path: Path) -> None:
    """EVI-8: without a directory of their own, images share the filesystem of pods."""
    (tmp_path / "pods").mkdir()
    shared = read_node_stats(tmp_path, Path("/pods"), None)
    apart = read_node_stats(tmp_path, Path("/pods"), Path("/none"))

    assert shared.node_fs.capacity
    assert shared.image_fs.capacity == shared.node_fs.capacity
    assert apart.image_fs == FsStats()


@pytest.mark.parametrize(
    ("there", "enabled", "expected"),
    [
        pytest.param(True, "Y\n", True, id="on"),
        pytest.param(True, "N\n", False, id="off"),
        pytest.param(True, "Y", False, id="one-byte"),
        pytest.param(True, None, False, id="no-parameter"),
        pytest.param(False, "Y\n", False, id="no-directory"),
    ],
)
def test_app_armor(tmp_path: Path, there: bool, enabled: str | None, expected: bool) -> None:
    """ARM-3."""
    if there:
        (tmp_path / "sys/kernel/security/apparmor").mkdir(parents=True)
    if enabled is not None:
        _write(tmp_path, "sys/module/apparmor/parameters/enabled", enabled)

    assert app_armor_enabled(tmp_path) is expected


def test_kernel_version(tmp_path: Path) -> None:
    """SYS-1."""
    assert kernel_version(tmp_path) is None
    _write(tmp_path, "proc/sys/kernel/osrelease", "6.8.0-40-generic\n")

    assert kernel_version(tmp_path) == "6.8.0-40-generic"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param((), False, id="nothing"),
        pytest.param(("memory/memory.memsw.limit_in_bytes",), False, id="version-1"),
        pytest.param(("cgroup.controllers",), False, id="no-swap-controller"),
        pytest.param(("cgroup.controllers", "init/memory.swap.max"), True, id="version-2"),
    ],
)
def test_limits_of_swap(tmp_path: Path, files: tuple[str, ...], expected: bool) -> None:
    """RSZ-3."""
    for name in files:
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert can_limit_swap(tmp_path) is expected
