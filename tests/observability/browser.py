"""A headless Chromium, where there is one: what a page looks like, and what it complains of."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.required import leave_out

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Shown:
    """A page as it was rendered: its document afterwards, its picture, and its complaints."""

    dom: str
    picture: bytes
    complaints: tuple[str, ...]

    def has_colour(self, rgb: str) -> bool:
        """Whether some pixel has this colour, six hexadecimal digits."""
        return bytes.fromhex(rgb) in pixels(self.picture)


def show(page: Path, width: int = 1200, height: int = 900) -> Shown:
    """Render a page. Leaves the test out where there is no Chromium."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        leave_out("no Chromium to look at the page with (Debian: chromium-headless-shell)")
    picture = page.with_suffix(".png")
    common = [
        *(program, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
        *(f"--window-size={width},{height}", "--force-device-scale-factor=0.5"),
        f"--user-data-dir={page.parent / 'profile'}",
    ]
    done = _run([*common, f"--screenshot={picture}", "--dump-dom", page.as_uri()])
    complaints = re.findall(r"CONSOLE[:(].*", done.stderr)
    return Shown(done.stdout, picture.read_bytes(), tuple(complaints))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)


def pixels(png: bytes) -> frozenset[bytes]:
    """The colours of an 8-bit PNG without interlacing, three bytes each."""
    position, data, width, channels = 8, b"", 0, 0
    while position < len(png):
        length, kind = struct.unpack_from(">I4s", png, position)
        body = png[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, _, depth, colour = struct.unpack_from(">IIBB", body)
            channels = {2: 3, 6: 4}[colour]
            if depth != 8 or body[12]:
                raise ValueError(f"a PNG of depth {depth}, interlacing {body[12]}")
        elif kind == b"IDAT":
            data += body
        position += length + 12
    raw = zlib.decompress(data)
    stride = width * channels
    found: set[bytes] = set()
    above = bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        row = _unfiltered(raw[start], raw[start + 1 : start + 1 + stride], above, channels)
        found.update(bytes(row[i : i + 3]) for i in range(0, stride, channels))
        above = row
    return frozenset(found)


def _unfiltered(kind: int, coded: bytes, above: bytearray, step: int) -> bytearray:
    """A row as it is, from one that is coded by differences (PNG, section 9)."""
    row = bytearray(coded)
    for i, byte in enumerate(coded):
        left = row[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        match kind:
            case 0:
                return row
            case 1:
                guess = left
            case 2:
                guess = above[i]
            case 3:
                guess = (left + above[i]) // 2
            case _:
                guess = _paeth(left, above[i], corner)
        row[i] = (byte + guess) & 0xFF
    return row


def _paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    return min((left, above, corner), key=lambda near: abs(estimate - near))
