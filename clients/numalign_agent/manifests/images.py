"""The tag in the name of an image."""

from __future__ import annotations


def tag_of(image: str) -> str:
    """The tag; `latest` where neither a tag nor a digest is named, empty for a digest alone."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or ("" if digest else "latest")
