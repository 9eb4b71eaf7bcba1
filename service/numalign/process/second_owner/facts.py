"""Looking at a node for others who hand out CPUs or memory: files, sockets and processes.

Blocks; separate from `rules`, which judge what is seen, and from `watch`, which looks again.
Everything is looked for below a root, so that a service in a container can look at its node.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from numalign.document.problems import DocumentError
from numalign.document.text import parse_document
from numalign.process.second_owner.rules import (
    KubeletPolicy,
    NodeFacts,
    Resource,
    Seen,
    driver_of,
    is_nri_policy,
    known_drivers,
)

_KUBELET = "var/lib/kubelet"
_STATE_FILES = {Resource.CPU: "cpu_manager_state", Resource.MEMORY: "memory_manager_state"}
_CONFIGURATIONS = (
    f"{_KUBELET}/config.yaml",
    "etc/kubernetes/kubelet/config.json",
    "etc/kubernetes/kubelet/kubelet-config.json",
    "etc/kubernetes/kubelet.conf",
)
POLICY_KEYS = {Resource.CPU: "cpuManagerPolicy", Resource.MEMORY: "memoryManagerPolicy"}
"""Where a KubeletConfiguration names the policies."""

_NRI_DIRECTORIES = ("opt/nri/plugins", "etc/nri/conf.d")
_PROBE_SECONDS = 1.0


def read_facts(root: Path) -> NodeFacts:
    """What is to be seen below `root`. What is not there is no fact, and no fault either."""
    unreadable: list[str] = []
    kubelet: list[KubeletPolicy] = []
    for resource, name in _STATE_FILES.items():
        kubelet += _read(root / _KUBELET / name, unreadable, _from_state(resource))
    for name in _CONFIGURATIONS:
        kubelet += _read(root / name, unreadable, _from_configuration)
    return NodeFacts(
        kubelet=tuple(kubelet),
        drivers=tuple(_drivers(root / _KUBELET, unreadable)),
        nri=(*_nri_files(root, unreadable), *_nri_processes(root / "proc")),
        unreadable=tuple(unreadable),
    )


def policies_of(document: Mapping[str, object], where: str) -> list[KubeletPolicy]:
    """The policies that a KubeletConfiguration names."""
    found = []
    for resource, key in POLICY_KEYS.items():
        policy = document.get(key)
        if isinstance(policy, str):
            found.append(KubeletPolicy(resource, policy, where))
    return found


Parse = Callable[[str, Path], list[KubeletPolicy]]


def _read(path: Path, unreadable: list[str], parse: Parse) -> list[KubeletPolicy]:
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unreadable.append(f"{path}: {error.strerror}")
    except (ValueError, DocumentError) as error:
        unreadable.append(f"{path}: {error}")
    return []


def _from_state(resource: Resource) -> Parse:
    def parse(text: str, path: Path) -> list[KubeletPolicy]:
        state = json.loads(text)
        policy = state.get("policyName") if isinstance(state, dict) else None
        if not isinstance(policy, str):
            raise ValueError("names no policy")  # noqa: TRY004 - a fault of the file
        return [KubeletPolicy(resource, policy, str(path))]

    return parse


def _from_configuration(text: str, path: Path) -> list[KubeletPolicy]:
    document = parse_document(text, str(path))
    if not isinstance(document, Mapping) or document.get("kind") != "KubeletConfiguration":
        # kubelet.conf is a kubeconfig in most installations.
        return []
    return policies_of(document, str(path))


def _drivers(kubelet: Path, unreadable: list[str]) -> Iterator[Seen]:
    found: dict[str, Path] = {}
    for path in _entries(kubelet / "plugins_registry", unreadable):
        driver = driver_of(path.name)
        if driver and driver not in found and _answers(path):
            found[driver] = path
    for driver in known_drivers():
        for path in _entries(kubelet / "plugins" / driver, unreadable):
            if driver not in found and _answers(path):
                found[driver] = path
    yield from (Seen(driver, str(path)) for driver, path in found.items())


def _nri_files(root: Path, unreadable: list[str]) -> Iterator[Seen]:
    for directory in _NRI_DIRECTORIES:
        for path in _entries(root / directory, unreadable):
            if is_nri_policy(path.name):
                yield Seen(path.name, str(path))


def _nri_processes(proc: Path) -> Iterator[Seen]:
    """Policies that run from a DaemonSet and leave no file: seen where processes are."""
    for directory in _entries(proc, []):
        if not directory.name.isdigit() or int(directory.name) == os.getpid():
            continue
        try:
            command = (directory / "cmdline").read_bytes().split(b"\0", 1)[0]
        except OSError:
            # The process is gone, or another user's: neither says anything.
            continue
        name = os.fsdecode(command).rpartition("/")[2]
        if name.startswith("nri-") and is_nri_policy(name):
            yield Seen(name, str(directory))


def _entries(directory: Path, unreadable: list[str]) -> Iterable[Path]:
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        unreadable.append(f"{directory}: {error.strerror}")
        return ()


def _answers(path: Path) -> bool:
    """Whether somebody listens at a socket; a file that was left behind is nobody."""
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_PROBE_SECONDS)
            probe.connect(str(path))
    except TimeoutError:
        return True
    except OSError as error:
        # Not being let in, or a queue that is full, means that somebody is there.
        return isinstance(error, BlockingIOError | PermissionError)
    return True
