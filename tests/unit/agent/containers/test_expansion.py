"""Variables in commands, as the kubelet replaces them."""

from __future__ import annotations

import pytest

from numalign_agent.containers.expansion import expanded

VARIABLES = {"A": "1", "B": "$(A)", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "1"),
        ("x-$(A)-$(A)", "x-1-1"),
        ("$(B)", "$(A)"),
        ("[$(EMPTY)]", "[]"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A}", "$A ${A}"),
        ("$", "$"),
        ("a$", "a$"),
        ("$(A", "$(A"),
        ("$($(A))", "$($(A))"),
        ("$$", "$"),
    ],
)
def test_expansion(text: str, result: str) -> None:
    assert expanded(text, VARIABLES) == result
