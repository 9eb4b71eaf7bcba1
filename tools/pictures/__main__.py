"""Draws the pictures of docs/user anew, from what numalign decides: `python tools/pictures`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pictures.decisions import outcome_of
from pictures.drawing import svg
from pictures.scenes import PICTURES, Picture

IMAGES = Path(__file__).parents[2] / "docs" / "user" / "images"


def drawn(picture: Picture) -> str:
    """The text of a picture's file."""
    return svg(
        picture,
        [[outcome_of(cell, picture.machine) for cell in row.cells] for row in picture.rows],
    )


def main() -> None:
    """Write every picture, there or into the directory that is named."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    for picture in PICTURES:
        (place / f"{picture.name}.svg").write_text(drawn(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
