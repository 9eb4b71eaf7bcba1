"""The real kubectl: of this machine, or out of Debian."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e.debian import unpacked


def kubectl() -> Path:
    """Its program. Leaves the test out where it cannot be had."""
    found = shutil.which("kubectl")
    return Path(found) if found else unpacked("trixie", "kubectl") / "usr" / "bin" / "kubectl"
