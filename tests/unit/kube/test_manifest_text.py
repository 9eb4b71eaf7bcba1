from __future__ import annotations

import pytest

from numalign.errors import InvalidInput
from numalign.kube.manifest_text import MAX_MANIFEST_BYTES, documents_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z", id="times-are-text"),
        pytest.param("2024-01-02", "2024-01-02", id="dates-are-text"),
        pytest.param("12:30", "12:30", id="no-base-60"),
        pytest.param("on", True, id="on"),
        pytest.param("n", False, id="single-letter"),
        pytest.param("Y", True, id="single-capital"),
        pytest.param("0x10", 16, id="hexadecimal"),
        pytest.param("017", 15, id="octal"),
        pytest.param("0o17", 15, id="octal-with-a-letter"),
        pytest.param("-3", -3, id="negative"),
        pytest.param("1e3", 1000.0, id="exponent-without-point"),
        pytest.param("1.5", 1.5, id="fraction"),
        pytest.param("500m", "500m", id="quantity"),
        pytest.param("'1'", "1", id="quoted"),
        pytest.param("~", None, id="null"),
        pytest.param("9.9.9", "9.9.9", id="version"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    (document,) = documents_of(f"key: {text}\n")

    assert document == {"key": value}
    assert type(document["key"]) is type(value)


def test_keys_become_text_and_the_last_of_a_repeated_one_wins() -> None:
    assert documents_of("1: a\ntrue: b\n~: c\nx: 1\nx: 2\n") == [
        {"1": "a", "true": "b", "null": "c", "x": 2}
    ]


def test_merge_keys() -> None:
    text = "base: &b {x: 1, z: 2}\nmore:\n  <<: *b\n  z: 3\n"

    assert documents_of(text) == [{"base": {"x": 1, "z": 2}, "more": {"x": 1, "z": 3}}]


def test_several_documents() -> None:
    assert documents_of("a: 1\n---\n---\n- 2\n") == [{"a": 1}, None, [2]]


def test_json_by_its_first_character() -> None:
    assert documents_of('  {"a": 1.0}') == [{"a": 1.0}]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("{a: 1}", "documents[0]", id="flow-mapping-is-no-json"),
        pytest.param("a: 1\n---\nb: [\n", "documents[1]", id="second"),
        pytest.param("!!python/object:os.system {}", "documents[0]", id="unsafe-tag"),
        pytest.param("? [a]\n: b\n", "documents[0]", id="list-as-key"),
        pytest.param("a: !!bool 2", "documents[0]", id="tagged-as-boolean"),
        pytest.param("a: !!int ''", "documents[0]", id="tagged-as-number"),
        pytest.param("a: !!timestamp x", "documents[0]", id="tagged-as-time"),
        pytest.param("{" * 5, "documents[0]", id="cut-off"),
        pytest.param("[" * 100_000, "documents[0]", id="deep"),
    ],
)
def test_texts_that_cannot_be_decoded(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        documents_of(text)

    (violation,) = caught.value.violations
    assert violation.field == place
    assert violation.description.startswith("cannot be decoded: ")


def test_a_text_that_is_too_large() -> None:
    with pytest.raises(InvalidInput, match=r"^documents: Too long: may not be more than 10485759"):
        documents_of("#" * (MAX_MANIFEST_BYTES + 1))
