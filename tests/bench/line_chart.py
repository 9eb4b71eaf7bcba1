"""Lines over two axes as an SVG that can be read on a light and on a dark page.

Plain text with the standard library; which lines there are and what they mean is for the caller
to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 232, 44, 52
_LEGEND_STEP = 21
_COLOURS = ("#0969da", "#bf5b04", "#1a7f5a", "#a13fc4", "#c9304f", "#7a6a00")
_COLOURS_ON_DARK = ("#58a6ff", "#f0883e", "#4fd1a5", "#d08bff", "#ff7b93", "#d9c64a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis: its title, where it has marks, and whether equal steps are equal factors.

    It reaches from the first mark to the last.
    """

    title: str
    marks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, number: float) -> float:
        """From 0 at the first mark to 1 at the last."""
        first, last = self._scaled(self.marks[0]), self._scaled(self.marks[-1])
        return (self._scaled(number) - first) / (last - first)

    def _scaled(self, number: float) -> float:
        return log10(number) if self.logarithmic else number


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points of one line. Lines of one `colour` belong together; a floor is `dashed`."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int
    dashed: bool = False


def decades(numbers: Sequence[float]) -> tuple[float, ...]:
    """Marks at 1, 2 and 5 of every power of ten, around all `numbers`."""
    low, high = min(numbers), max(numbers)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    marks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    first = max(mark for mark in marks if mark <= low)
    last = min(mark for mark in marks if mark >= high)
    return tuple(mark for mark in marks if first <= mark <= last)


def line_chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """The chart, with a legend at its right."""
    drawn = [*_frame(title, x, y)]
    for line in lines:
        places = " ".join(f"{_across(x, a):.1f},{_down(y, b):.1f}" for a, b in line.points)
        drawn.append(f'<polyline class="{_classes(line)}" points="{places}"/>')
    drawn += _legend(lines)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
            f"<title>{escape(title)}</title>",
            f"<style>{_style()}</style>",
            *drawn,
            "</svg>\n",
        ]
    )


def _frame(title: str, x: Axis, y: Axis) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    drawn = [f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>']
    for mark in y.marks:
        at = _down(y, mark)
        drawn.append(f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>')
        drawn.append(
            f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_number(mark)}</text>'
        )
    for mark in x.marks:
        at = _across(x, mark)
        drawn.append(f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{bottom}"/>')
        drawn.append(
            f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{_number(mark)}</text>'
        )
    middle = (_LEFT + right) / 2
    drawn.append(
        f'<text x="{middle}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(x.title)}</text>'
    )
    drawn.append(f'<text x="12" y="{_TOP - 8}">{escape(y.title)}</text>')
    return drawn


def _legend(lines: Sequence[Line]) -> list[str]:
    left = _WIDTH - _RIGHT + 16
    drawn = []
    for number, line in enumerate(lines):
        at = _TOP + 8 + number * _LEGEND_STEP
        drawn.append(f'<polyline class="{_classes(line)}" points="{left},{at} {left + 24},{at}"/>')
        drawn.append(f'<text x="{left + 32}" y="{at + 4}">{escape(line.name)}</text>')
    return drawn


def _classes(line: Line) -> str:
    return f"line c{line.colour % len(_COLOURS)}{' dashed' if line.dashed else ''}"


def _style() -> str:
    def colours(of: Sequence[str]) -> str:
        return "".join(f".c{i}{{stroke:{colour}}}" for i, colour in enumerate(of))

    return (
        "text{font:12px sans-serif;fill:#3d444d}.title{font-size:15px;font-weight:600}"
        ".grid{stroke:#8c959f;stroke-opacity:.35;stroke-width:1}"
        ".line{fill:none;stroke-width:2}.dashed{stroke-dasharray:5 4}"
        f"{colours(_COLOURS)}"
        "@media (prefers-color-scheme:dark){text{fill:#c9d1d9}"
        f"{colours(_COLOURS_ON_DARK)}}}"
    )


def _across(axis: Axis, number: float) -> float:
    return _LEFT + axis.place(number) * (_WIDTH - _LEFT - _RIGHT)


def _down(axis: Axis, number: float) -> float:
    return _HEIGHT - _BOTTOM - axis.place(number) * (_HEIGHT - _TOP - _BOTTOM)


def _number(mark: float) -> str:
    return f"{mark:g}"
