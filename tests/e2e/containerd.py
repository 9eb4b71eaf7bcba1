"""A containerd with NRI and CRI of its own: started, stopped, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from grpc import aio
from tests.e2e.cri import Cri
from tests.e2e.debian import unpacked
from tests.e2e.images import write_image
from tests.e2e.leftovers import OWNER, cgroup_of, remove_cgroups, remove_leftovers
from tests.e2e.required import leave_out, need

USUAL_SUITE = "trixie"
"""Has containerd 1.7, the oldest that numalign works with."""

NEWER_SUITE = "forky"
"""Has containerd 2."""

PAUSE, BUSYBOX = "localhost/numalign-pause:e2e", "localhost/numalign-busybox:e2e"

_CGROUPS = Path("/sys/fs/cgroup")
_START_SECONDS = 30.0
_COMMON = """
root = "{directory}/root"
state = "{directory}/state"
[grpc]
  address = "{directory}/c.sock"
[debug]
  level = "warn"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = {nri_off}
  disable_connections = false
  plugin_registration_timeout = "{patience}"
  plugin_request_timeout = "{patience}"
  socket_path = "{nri_socket}"
  plugin_path = "{directory}/nri-plugins"
  plugin_config_path = "{directory}/nri-conf"
"""
_RUNTIMES = """
[plugins."{cri}"]
  {own}
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ["{{directory}}/cdi"]
  [plugins."{cri}".containerd]
    default_runtime_name = "runc"
    [plugins."{cri}".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."{cri}".containerd.runtimes.runc.options]
        BinaryName = "{{runc}}"
        SystemdCgroup = false
"""
_CONFIGS = {
    1: f"""version = 2
{_COMMON}
{_RUNTIMES.format(cri="io.containerd.grpc.v1.cri", own='sandbox_image = "{pause}"')}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{directory}}/cni/bin"
    conf_dir = "{{directory}}/cni/conf"
""",
    2: f"""version = 3
{_COMMON}
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{{pause}}"
{_RUNTIMES.format(cri="io.containerd.cri.v1.runtime", own="")}
""",
}


class Containerd:
    """One runtime below a directory with a short path. Its pods are in `cgroup`."""

    def __init__(self, directory: Path, suite: str = USUAL_SUITE, *, apart: bool = False) -> None:
        """The containerd of a suite of Debian.

        `apart`, it has a mount namespace of its own, where containers can follow the host's mounts.
        """
        self.directory = directory
        self.cgroup = cgroup_of(os.getpid())
        self.cri = Cri(directory / "c.sock")
        self.nri_socket = directory / "nri.sock"
        self._binaries, self._runc, self._busybox = programs(suite)
        self.version = version_of(self._binaries)
        self._by = ("unshare", "--mount", "--propagation", "shared") if apart else ()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, *, nri: bool = True, patience: str = "20s") -> None:
        """Start it and wait until it answers. Its usual `patience` with plugins is 2 s."""
        config = self.directory / "config.toml"
        config.write_text(
            _CONFIGS[self.version[0]].format(
                directory=self.directory,
                pause=PAUSE,
                runc=self._runc,
                nri_socket=self.nri_socket,
                nri_off="false" if nri else "true",
                patience=patience,
            ),
            encoding="utf-8",
        )
        with (self.directory / "containerd.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._by, self._binaries / "containerd", "-c", config),
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "PATH": f"{self._binaries}:{os.environ['PATH']}",
                    OWNER: str(os.getpid()),
                },
                start_new_session=True,
            )
        async with asyncio.timeout(_START_SECONDS):
            while True:
                assert self._process.returncode is None, self.log()
                try:
                    await self.cri.version(1)
                except aio.AioRpcError:
                    await asyncio.sleep(0.05)
                else:
                    return

    async def import_images(self) -> None:
        """Make the two images that pods are made of."""
        sleep = ["/bin/sleep", "1000000"]
        links = {f"bin/{name}": "busybox" for name in ("sleep", "grep", "cat", "sh")}
        for number, name in enumerate((PAUSE, BUSYBOX)):
            tar = self.directory / f"image-{number}.tar"
            write_image(tar, name, {"bin/busybox": self._busybox}, links, sleep)
            await self.import_image(tar)

    async def import_image(self, tar: Path) -> None:
        """Take an image out of a file."""
        await asyncio.to_thread(self._import, tar)

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """End the daemon; its containers go on."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            await self._process.wait()

    def _import(self, tar: Path) -> None:
        to = ("-a", self.directory / "c.sock", "-n", "k8s.io")
        subprocess.run(
            (self._binaries / "ctr", *to, "image", "import", tar),
            check=True,
            capture_output=True,
            timeout=120,
        )

    async def remove_pods(self) -> None:
        """End every pod. Shims outlive the daemon, so pods go first."""
        for sandbox in await self.cri.sandboxes():
            with contextlib.suppress(aio.AioRpcError):
                await self.cri.stop_sandbox(sandbox.id)
            await self.cri.remove_sandbox(sandbox.id)

    async def close(self) -> None:
        """End it and remove what it has left."""
        await self.cri.close()
        await self.stop()
        await asyncio.to_thread(self._clean)

    def _clean(self) -> None:
        for controller in (_CGROUPS, *_CGROUPS.glob("*")):
            remove_cgroups(controller / self.cgroup.strip("/"))
        shutil.rmtree(self.directory / "root", ignore_errors=True)

    def log(self) -> str:
        """What it has said."""
        return (self.directory / "containerd.log").read_text(errors="replace")


def check_machine() -> None:
    """Leave the test out where containers cannot be run; remove what killed tests left behind."""
    need(os.geteuid() == 0, "containers need root")
    roots = [r for r in (_CGROUPS / "cpuset", _CGROUPS) if (r / "cgroup.procs").exists()]
    need(bool(roots), "no cgroup file system")
    probe = roots[0] / f"numalign-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        leave_out(f"no cgroup can be made: {error}")
    need(len(os.sched_getaffinity(0)) >= 2, "two CPUs are needed, one shared and one exclusive")
    remove_leftovers(_CGROUPS)


def programs(suite: str = USUAL_SUITE) -> tuple[Path, Path, Path]:
    """The directory of containerd's programs, runc, and a static busybox."""
    binaries = unpacked(suite, "containerd") / "usr/bin"
    installed = shutil.which("runc")
    if installed is None:
        # A newer runc wants a newer libc than this machine may have.
        installed = str(unpacked(own_suite(), "runc") / "usr/sbin/runc")
    return binaries, Path(installed), unpacked(own_suite(), "busybox-static") / "bin/busybox"


def version_of(binaries: Path) -> tuple[int, ...]:
    """The version of a containerd: 1.7 or newer, which has NRI."""
    command = (binaries / "containerd", "--version")
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    if "GLIBC" in done.stderr:
        # A suite that is ahead of the machine's: nothing that the machine could be made to do.
        pytest.skip(f"the C library of this machine is too old: {done.stderr.strip()}")
    found = re.search(r" v?(\d+)\.(\d+)\.(\d+)", done.stdout)
    assert found is not None, f"containerd does not say which version it is: {done}"
    return tuple(map(int, found.groups()))


def own_suite() -> str:
    """The release of Debian that this machine runs."""
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    return leave_out("this is no release of Debian")
