"""Pods out of files and standard input, with the file named in whatever is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

from numalign.errors import ConfigError, InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.templates import pods_from_text

STDIN = "-"


def read_pods(names: tuple[str, ...]) -> tuple[tuple[core_pb2.Pod, ...], tuple[str, ...]]:
    """The pods in the manifests, in order, and a sentence for everything that was left aside.

    A name is a file, or `-` for standard input. Raises ConfigError with a line for each thing
    wrong in any of them, or where there is no pod in one.
    """
    pods: list[core_pb2.Pod] = []
    ignored: list[str] = []
    problems: list[str] = []
    for name in names:
        called = "standard input" if name == STDIN else name
        try:
            found = pods_from_text(_text_of(name, called))
        except ConfigError as error:
            problems.append(str(error))
            continue
        except InvalidInput as error:
            problems += [
                f"{called}: {v.field}: {_one_line(v.description)}" for v in error.violations
            ]
            continue
        if not found.pods:
            problems.append(f"{called}: there is no pod in it")
        pods += found.pods
        ignored += [f"{called}: {sentence}" for sentence in found.ignored]
    if problems:
        raise ConfigError("\n".join(problems))
    return tuple(pods), tuple(ignored)


def _text_of(name: str, called: str) -> str:
    try:
        if name == STDIN:
            return sys.stdin.buffer.read().decode()
        return Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{called}: is not UTF-8: {error.reason} at byte {error.start}"
        ) from error
    except OSError as error:
        raise ConfigError(f"{called}: {error.strerror}") from error


def _one_line(text: str) -> str:
    """A decoder's message over several lines as one; it names line and column."""
    return " ".join(text.split())
