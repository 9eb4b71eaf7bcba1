"""The emulator, a kernel and a few tools, out of the Debian packages of the machine's own suite.

With what they depend on and the machine lacks: unpacked into a cache and not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.e2e.debian import cache_directory
from tests.e2e.required import need

_SECONDS = 300
_PACKAGES = ("qemu-system-x86", "linux-image-amd64", "busybox-static", "numactl")


@cache
def unpacked() -> Path:
    """The directory below which all of it is. Leaves the test out where it cannot be had."""
    root = cache_directory() / "vm" / "-".join(_PACKAGES)
    if root.is_dir():
        return root
    need(shutil.which("apt-get") is not None, "no apt-get to get Debian packages with")
    need(os.uname().machine == "x86_64", f"the machine is for x86_64, not {os.uname().machine}")
    work = cache_directory() / f"vm-apt-{os.getpid()}"
    try:
        for directory in ("lists/partial", "archives/partial"):
            (work / directory).mkdir(parents=True)
        _apt(work, "update")
        _apt(
            work, "install", "--yes", "--download-only", "--no-install-recommends", "--reinstall",
            *_PACKAGES,
        )  # fmt: skip
        new = root.with_name(f"{root.name}.new-{os.getpid()}")
        new.mkdir(parents=True)
        for package in sorted((work / "archives").glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, new], check=True, timeout=_SECONDS)
        new.rename(root)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return root


def libraries(root: Path) -> str:
    """A search path for the libraries of the programs below `root`."""
    return ":".join(
        str(root / directory) for directory in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
    )


def _apt(work: Path, *arguments: str) -> None:
    """Run apt over the machine's sources, with lists and archives of its own."""
    settings = {
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work,
        "Dir::Cache::archives": work / "archives",
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    done = subprocess.run(
        ["apt-get", "-q", *options, *arguments],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    need(done.returncode == 0, f"apt-get {arguments[0]}: {done.stderr.strip()}")
