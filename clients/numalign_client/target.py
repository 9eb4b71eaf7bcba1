"""Where the Admission service listens, as gRPC wants it written."""

from __future__ import annotations

import os
from pathlib import Path

DEFAULT_SOCKET = Path("/run/numalign/admission.sock")
"""The socket of a node where numalign runs as root with its default settings."""


def target_of(address: str | os.PathLike[str]) -> str:
    """The gRPC target for `address`: a path, or a target such as `unix:///path` as it is.

    Raises ValueError for an empty address.
    """
    text = os.fspath(address)
    if not text:
        raise ValueError("the address of the Admission service is empty")
    if text.startswith("/"):
        return f"unix://{text}"
    if ":" in text:
        return text
    return f"unix://{Path(text).absolute()}"
