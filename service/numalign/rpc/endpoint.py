"""Where somebody who registers may listen: a hint provider, a device plugin.

The places where a request names a file. Separate from reading the configuration, whose paths
are its owner's own choice; who may register is not trusted to make this process connect to
whatever socket root can reach.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from numalign.errors import FieldViolation, InvalidInput
from numalign.rpc.socket_file import LONGEST_PATH

_FIELD = "endpoint"


def provider_socket(endpoint: str, directories: Sequence[Path]) -> Path:
    """The socket that `endpoint` names: an absolute path, or `unix:` or `unix://` and one.

    Symbolic links are followed first, and the path they lead to is what is returned; it must
    be below one of `directories`. Whether somebody answers there is left to the first call.
    Raises InvalidInput.
    """
    text = endpoint.removeprefix("unix://") if endpoint.startswith("unix:///") else endpoint
    return _below(text.removeprefix("unix:"), directories)


def plugin_socket(endpoint: str, directory: Path) -> Path:
    """The socket of a device plugin: a name in `directory`, where everything is looked for.

    A leading slash does not lead out of it, as with a kubelet; dots and links must not
    either. Raises InvalidInput.
    """
    return _below(f"{directory}/{endpoint}", (directory,))


def _below(text: str, directories: Sequence[Path]) -> Path:
    if not text.startswith("/") or "\0" in text:
        raise _wrong("must be the absolute path of a Unix socket")
    if len(os.fsencode(text)) > LONGEST_PATH:
        raise _wrong(f"a socket's path has at most {LONGEST_PATH} bytes")
    try:
        path = Path(text).resolve()
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFSOCK
    except (OSError, RuntimeError) as error:
        raise _wrong(f"cannot be resolved: {_reason(error)}") from error
    if not any(path.is_relative_to(directory.resolve()) for directory in directories):
        allowed = ", ".join(map(str, directories))
        raise _wrong(f"must be below {allowed}")
    if not stat.S_ISSOCK(mode):
        raise _wrong("is not a socket")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise _wrong(f"a socket's path has at most {LONGEST_PATH} bytes, links followed")
    return path


def _wrong(reason: str) -> InvalidInput:
    return InvalidInput(FieldViolation(_FIELD, reason))


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
