"""The image, built by `make image` from the Dockerfile as it is.

No registry is asked for the base: a small Debian with its Python is made, gets the tag that the
Dockerfile wants, and is built upon by the digest that it has. The packages come from the index
that pip uses here. buildah and debootstrap are unpacked and not installed; base and finished
steps stay in the cache.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.debian import cache_directory, debian_archive, unpacked
from tests.e2e.required import need

ROOT = Path(__file__).parents[3]
DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"

_SUITE = "bookworm"  # later ones call the libraries otherwise
_LIBRARIES = ("libgpgme11", "libassuan0", "libgpg-error0", "libdevmapper1.02.1", "libseccomp2")
_INCLUDED = "python3,python3-venv,ca-certificates"
_SECONDS = 600
# What it is linked with is laid over the machine's own in a mount namespace: it starts itself
# again with an empty environment, so that LD_LIBRARY_PATH does not reach it.
_BUILDAH = """\
#!/bin/sh
set -e
exec unshare --mount --propagation private sh -c '
lib={root}/usr/lib/x86_64-linux-gnu
mount -t overlay overlay -o lowerdir=$lib:/usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu
command=$1
shift
case $command in build | push) set -- --signature-policy {policy} "$@" ;; esac
exec {root}/usr/bin/buildah --root {store}/root --runroot {store}/run --storage-driver overlay \\
    "$command" "$@"
' buildah "$@"
"""


def built_image(name: str, into: Path) -> None:
    """Build it, and write it to a file that a container runtime can import as `name`.

    Leaves the test out where it cannot be built.
    """
    with _store() as store:
        buildah = _buildah(store)
        tag = _base_tag()
        if _run(buildah, "images", "--quiet", "--filter", f"reference={tag}") == "":
            _make_base(buildah, tag)
        inspect = (buildah, "inspect", "--type", "image", "--format")
        base = f"{tag}@{_run(*inspect, '{{.FromImageDigest}}', tag)}"
        flags = ["--isolation", "chroot", "--pull=never", "--layers", *_package_index()]
        _run(
            *("make", "--no-print-directory", "-C", ROOT, "image"),
            *(f"BUILDER={buildah}", f"IMAGE={name}", f"BASE={base}"),
            f"IMAGE_FLAGS={shlex.join(flags)}",
        )
        label = '{{index .OCIv1.Config.Labels "org.opencontainers.image.base.name"}}'
        assert _run(*inspect, label, name) == base
        _run(buildah, "push", "--disable-compression", name, f"oci-archive:{into}:{name}")
        _run(buildah, "rmi", "--prune")


@contextmanager
def _store() -> Iterator[Path]:
    """Where images are kept. One build at a time works on it."""
    need(os.geteuid() == 0, "images are built as root")
    need(shutil.which("unshare") is not None, "no unshare to build images with")
    store = cache_directory() / "image"
    store.mkdir(parents=True, exist_ok=True)
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield store


def _buildah(store: Path) -> Path:
    """A command that is buildah with that store."""
    root = unpacked(_SUITE, "buildah", *_LIBRARIES)
    policy, command = store / "policy.json", store / "buildah"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}', encoding="utf-8")
    text = _BUILDAH.format(root=root, policy=policy, store=store)
    command.write_text(text, encoding="utf-8")
    command.chmod(0o755)
    return command


def _base_tag() -> str:
    """What the Dockerfile calls its base, in full but for the digest."""
    text = DOCKERFILE.read_text("utf-8")
    found = re.search(r"^ARG PYTHON_IMAGE=([^\s@]+)@sha256:", text, re.MULTILINE)
    assert found is not None, DOCKERFILE
    return f"docker.io/library/{found[1]}"


def _make_base(buildah: Path, name: str) -> None:
    """A Debian with Python, as a base for the Dockerfile."""
    debootstrap = unpacked(_SUITE, "debootstrap") / "usr"
    with tempfile.TemporaryDirectory(prefix="nab-", dir=cache_directory()) as work:
        root = Path(work) / "root"
        _run(
            *(debootstrap / "sbin" / "debootstrap", "--variant=minbase", f"--include={_INCLUDED}"),
            *(_SUITE, root, debian_archive()),
            DEBOOTSTRAP_DIR=str(debootstrap / "share" / "debootstrap"),
        )
        left = ("var/cache/apt/archives", "var/lib/apt/lists", "dev")
        without = [f"--exclude=./{directory}/*" for directory in left]
        _run("tar", "-C", root, *without, "-cf", Path(work) / "base.tar", ".")
        file = Path(work) / "Containerfile"
        file.write_text("FROM scratch\nADD base.tar /\n", encoding="utf-8")
        _run(buildah, "build", "--pull=never", "-t", name, "-f", file, work)


def _package_index() -> list[str]:
    """The index that pip asks on this machine, and who vouches for it, as arguments of a build."""
    found = dict(
        line.split("=", 1)
        for line in _run(ROOT / ".venv" / "bin" / "pip", "config", "list").splitlines()
    )
    settings = {key.rpartition(".")[2]: value.strip("'") for key, value in found.items()}
    flags = []
    if index := settings.get("index-url"):
        flags += ["--build-arg", f"PIP_INDEX_URL={index}"]
    if cert := settings.get("cert"):
        flags += ["--build-arg", f"PIP_CERT={cert}", "-v", f"{cert}:{cert}:ro"]
    return flags


def _run(*command: str | Path, **environment: str) -> str:
    """What a program prints; all that it said, where it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout.strip()
