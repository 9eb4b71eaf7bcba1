"""A virtual machine of four NUMA nodes, by software emulation: booted for one job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.debian import CACHE, cache_directory
from tests.e2e.vm.initramfs import JOB_ENDED, initramfs
from tests.e2e.vm.packages import libraries, unpacked

ROOT = Path(__file__).parents[3]
FIXTURE = ROOT / "tests" / "fixtures" / "sysfs" / "1s-nps4-smt"
"""The shape: its machine was such a one, with half the memory."""

NODE_MIB = 512
HUGE_PAGES = 64
BOOT_SECONDS = 400.0
TRIES = 2

_NOISE = "TCG doesn't support requested feature"

_KERNEL = (
    "console=ttyS0 quiet panic=-1 lpj=4000000 no_timer_check mitigations=off random.trust_cpu=1 "
    f"default_hugepagesz=2M hugepages={HUGE_PAGES}"
)


def run_inside(script: Path, seconds: float = BOOT_SECONDS) -> Mapping[str, Any]:
    """Run a Python script in a machine of its own, in this checkout; what it reports, as JSON.

    It writes its report to /dev/ttyS1. A machine that hangs is given up and booted once more.
    """
    root = unpacked()
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="vm") as directory:
            console, report = _boot(root, Path(directory), script, seconds)
        if report is not None:
            sys.stdout.write(console)  # shown for a test that failed
            return report
        if JOB_ENDED in console:
            break
    pytest.fail(f"no report from the machine; its console:\n{console}")


def _boot(
    root: Path, directory: Path, script: Path, seconds: float
) -> tuple[str, Mapping[str, Any] | None]:
    job = directory / "job.sh"
    job.write_text(
        "export HOME=/run TMPDIR=/run PYTHONDONTWRITEBYTECODE=1 "
        f"PYTHONPATH={ROOT}:{ROOT}/service:{ROOT}/clients {CACHE}={cache_directory()} "
        f"PATH={root}/usr/bin:$PATH LD_LIBRARY_PATH={libraries(root)}\n"
        "ulimit -n 65536\n"
        f"exec {sys.executable} -X faulthandler {script} 3>/dev/ttyS1\n"
    )
    initrd = directory / "initrd.gz"
    initrd.write_bytes(initramfs(root))
    console, report = directory / "console", directory / "report"
    command = [
        _program(root), *_shape(), *_firmware(root),
        "-kernel", str(next((root / "boot").glob("vmlinuz-*"))),
        "-initrd", str(initrd),
        "-append", f"{_KERNEL} vmjob={job}",
        "-display", "none", "-vga", "none", "-monitor", "none", "-net", "none", "-no-reboot",
        "-serial", f"file:{console}", "-serial", f"file:{report}",
        "-virtfs",
        "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
    ]  # fmt: skip
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries(root)}
    try:
        done = subprocess.run(
            command, env=environment, timeout=seconds, capture_output=True, check=False
        )
        lines = done.stderr.decode(errors="replace").splitlines()
        ended = "\n".join(line for line in lines if _NOISE not in line)
    except subprocess.TimeoutExpired:
        ended = f"given up after {seconds} s"
    said = console.read_text(errors="replace") if console.exists() else ""
    told = report.read_text(errors="replace").splitlines() if report.exists() else []
    found = [line for line in told if line.startswith("{") and line.endswith("}")]
    return f"{said}\n{ended}", json.loads(found[-1]) if found else None


def _program(root: Path) -> str:
    return str(root / "usr" / "bin" / "qemu-system-x86_64")


def _firmware(root: Path) -> list[str]:
    share = root / "usr" / "share"
    return [word for name in ("qemu", "seabios") for word in ("-L", str(share / name))]


def _shape() -> list[str]:
    """The arguments that the fixture's machine was made with, and more memory."""
    arguments: list[str] = json.loads(FIXTURE.with_suffix(".json").read_text())["qemu_args"]
    nodes = sum(argument.startswith("memory-backend-ram") for argument in arguments)
    sizes = {"1024": str(nodes * NODE_MIB)}
    return [sizes.get(a, a.replace("size=256M", f"size={NODE_MIB}M")) for a in arguments]
