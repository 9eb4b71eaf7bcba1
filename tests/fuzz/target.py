"""What is fuzzed: one parser, what it may raise, and where its inputs begin.

Separate from the engines that make up inputs, so that every target runs under each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One parser.

    `run` takes any bytes, parses what they stand for, and checks what it can about the result
    with an AssertionError. Only an exception of `documented` may come out of it. `seeds` are
    inputs from which others are made; none of them needs to be longer than `most_bytes`. With
    `counts`, an engine that watches the code is told how often each place was reached, else only
    that it was.
    """

    name: str
    run: Callable[[bytes], object]
    documented: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]
    most_bytes: int = 4096
    counts: bool = True
