"""Decoding of YAML and JSON, stricter than the decoders."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.document.problems import DocumentError
from numalign.document.text import parse_document, read_document


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        pytest.param("", "a.yaml", None, id="empty YAML"),
        pytest.param("a: {b: [1, x]}", "a.yaml", {"a": {"b": [1, "x"]}}, id="YAML"),
        pytest.param('{"a": {"b": [1, "x"]}}', "a.json", {"a": {"b": [1, "x"]}}, id="JSON"),
        pytest.param('{"a": 1}', "a.yaml", {"a": 1}, id="JSON in a YAML file"),
        pytest.param(
            "b: &b {k: 1}\na: {<<: *b, k: 2}",
            "a.yaml",
            {"b": {"k": 1}, "a": {"k": 2}},
            id="a merged key may be overridden",
        ),
    ],
)
def test_parsed(text: str, name: str, expected: object) -> None:
    assert parse_document(text, name) == expected


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        pytest.param("a: 1\na: 2", "a.yaml", 'the key "a" stands twice', id="YAML key twice"),
        pytest.param('{"a": 1, "a": 2}', "a.json", 'the key "a" stands twice', id="JSON key twice"),
        pytest.param("a: [", "a.yaml", "a.yaml: ", id="broken YAML"),
        pytest.param("{", "a.json", "a.json: ", id="broken JSON"),
        pytest.param("[NaN]", "a.json", "NaN is not a JSON value", id="JSON without numbers"),
        pytest.param("a: 1\n---\nb: 2", "a.yaml", "a.yaml: ", id="two documents"),
        pytest.param("a: !!python/none x", "a.yaml", "a.yaml: ", id="a foreign tag"),
        pytest.param("a: 2001-13-01", "a.yaml", "month must be in 1..12", id="no date"),
        pytest.param("a: !!bool 2", "a.yaml", "a.yaml: ", id="tagged as a boolean"),
        pytest.param("a: !!int ''", "a.yaml", "a.yaml: ", id="tagged as a number"),
        pytest.param("a: !!timestamp x", "a.yaml", "a.yaml: ", id="tagged as a time"),
        pytest.param("[" * 100_000, "a.yaml", "a.yaml: ", id="deep YAML"),
        pytest.param("[" * 100_000, "a.json", "a.json: ", id="deep JSON"),
    ],
)
def test_refused(text: str, name: str, message: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_document(text, name)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("a: 1\nb: [1,\nc: 2", "a.yaml: line 4, column 1: ", id="unfinished"),
        pytest.param("a: 1\n\na: 2", "a.yaml: line 3, column 1: ", id="key twice"),
        pytest.param("a: \x01", "a.yaml: position 3: ", id="control character"),
    ],
)
def test_a_fault_of_yaml_begins_with_its_place(text: str, place: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_document(text, "a.yaml")

    assert str(refused.value).startswith(place)
    assert "<unicode string>" not in str(refused.value)


def test_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(DocumentError, match=r"binary\.yaml: cannot be read"):
        read_document(path)
