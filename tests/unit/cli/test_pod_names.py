"""Pods are shown by name where texts have their uids."""

from __future__ import annotations

import pytest

from numalign.cli.tables.explanation import with_names

UID = "0a6b2b5c-3a0a-4b6e-9d0e-6f8a1c2d3e4f"


@pytest.mark.parametrize(
    ("text", "names", "shown"),
    [
        pytest.param(
            f"cpu is held by {UID}/app (4) and b (2).",
            {UID: "ml/train", "b": "ml/serve"},
            "cpu is held by ml/train/app (4) and ml/serve (2).",
            id="holders",
        ),
        pytest.param(f'pod "{UID}": gone', {UID: "ml/x"}, 'pod "ml/x": gone', id="in-quotes"),
        pytest.param(f"ends with {UID}", {UID: "ml/x"}, "ends with ml/x", id="at-the-end"),
        pytest.param(
            "a pod that asks for a GPU; gpu is held by a/c (1)",
            {"a": "default/a"},
            "a pod that asks for a GPU; gpu is held by default/a/c (1)",
            id="a-uid-that-is-a-word",
        ),
        pytest.param(
            "held by a1 (1) and a (1)",
            {"a": "ns/a1", "a1": "ns/other"},
            "held by ns/other (1) and ns/a1 (1)",
            id="a-name-like-another-uid",
        ),
        pytest.param("held by a.b (1)", {"a.b": "ns/x"}, "held by ns/x (1)", id="with-a-dot"),
        pytest.param("uid-1 holds 4.", {"uid-1": "ns/x"}, "ns/x holds 4.", id="before-a-word"),
        pytest.param("nothing to name", {}, "nothing to name", id="no-names"),
    ],
)
def test_uids_are_replaced_where_they_are_uids(
    text: str, names: dict[str, str], shown: str
) -> None:
    assert with_names(text, names) == shown
