"""Programs out of Debian's packages, unpacked into a cache and not installed.

The archive is the one that the machine's own apt uses; only the suite may be another. The
cache is outside of the checkout, and what is in it is used again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.e2e.required import leave_out, need

CACHE = "NUMALIGN_E2E_CACHE"
_SOURCES = Path("/etc/apt")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SECONDS = 300


def cache_directory() -> Path:
    """Where unpacked packages are kept."""
    given = os.environ.get(CACHE)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "numalign-e2e"


@cache
def unpacked(suite: str, *packages: str) -> Path:
    """The directory below which files of these packages of a suite are, without dependencies.

    Leaves the test out where there is no apt, or the archive cannot be reached.
    """
    root = cache_directory() / suite / "-".join(packages)
    if root.is_dir():
        return root
    need(shutil.which("apt-get") is not None, "no apt-get to get Debian packages with")
    archive = debian_archive()
    work = cache_directory() / f"apt-{os.getpid()}"
    try:
        options = _private_apt(work, f"deb [signed-by={_KEYRING}] {archive} {suite} main\n")
        _apt(work, [*options, "update"])
        _apt(work, [*options, "download", *packages])
        root.parent.mkdir(parents=True, exist_ok=True)
        new = root.with_name(f"{root.name}.new-{os.getpid()}")
        for package in sorted(work.glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, new], check=True, timeout=_SECONDS)
        new.rename(root)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return root


def debian_archive() -> str:
    """The address of the Debian archive in the machine's own sources."""
    files = [
        *sorted((_SOURCES / "sources.list.d").glob("*.sources")),
        *sorted((_SOURCES / "sources.list.d").glob("*.list")),
        _SOURCES / "sources.list",
    ]
    for file in files:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        found = re.search(r"^(?:URIs:|deb(?: \[[^]]*\])?)\s+(\S+/debian)/?\s*", text, re.MULTILINE)
        if found:
            return found[1]
    return leave_out("apt has no Debian archive configured")


def _private_apt(work: Path, sources: str) -> list[str]:
    """Options that make apt use lists and a state of its own, so that nothing is installed."""
    for directory in ("lists/partial", "cache/archives/partial"):
        (work / directory).mkdir(parents=True)
    (work / "status").touch()
    (work / "sources.list").write_text(sources, encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",
    }
    return [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]


def _apt(work: Path, arguments: Sequence[str]) -> None:
    done = subprocess.run(
        ["apt-get", "-q", *arguments],
        cwd=work,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    need(done.returncode == 0, f"apt-get {arguments[-1]}: {done.stderr.strip()}")
