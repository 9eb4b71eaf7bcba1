"""Typed reading of one mapping, with every problem recorded."""

from __future__ import annotations

from enum import StrEnum

import pytest

from numalign.document.duration import DurationSyntaxError, parse_duration
from numalign.document.problems import DocumentError, Problems
from numalign.document.section import Section


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def _section(value: object) -> Section:
    return Section(value, "top", Problems())


def test_right_fields() -> None:
    section = _section(
        {
            "text": "a",
            "flag": True,
            "count": 3,
            "colour": "blue",
            "time": "1m30s",
            "null": None,
            "map": {"a": "b"},
            "amounts": {"memory": "1Gi", "cpu": 2, "half": 0.5},
            "numbers": [1, 2],
        }
    )

    assert section.text("text") == "a"
    assert section.boolean("flag") is True
    assert section.integer("count", 0, 1, 5) == 3
    assert section.choice("colour", Colour.RED) is Colour.BLUE
    assert section.seconds("time", 1.0) == 90.0
    assert section.text_map("map") == {"a": "b"}
    amounts = section.quantity_map("amounts")
    assert {name: amount.milli_value() for name, amount in amounts.items()} == {
        "memory": (1 << 30) * 1000,
        "cpu": 2000,
        "half": 500,
    }
    assert section.integers("numbers") == (1, 2)
    assert "null" not in section
    assert not section.problems


def test_absent_fields_are_their_defaults() -> None:
    section = _section(None)

    assert section.text("a", "x") == "x"
    assert section.boolean("a", True) is True
    assert section.integer("a", 7) == 7
    assert section.choice("a", Colour.RED) is Colour.RED
    assert section.seconds("a", 2.5) == 2.5
    assert section.text_map("a") == {}
    assert section.quantity_map("a") == {}
    assert list(section.items("a")) == []
    assert not section.problems


@pytest.mark.parametrize(
    ("method", "value", "problem"),
    [
        pytest.param("text", 1, "top.f: must be text, not 1 (write it in quotes)", id="number"),
        pytest.param("text", [], "top.f: must be text, not a list", id="list as text"),
        pytest.param("boolean", "yes", 'top.f: must be true or false, not "yes"', id="yes"),
        pytest.param(
            "text_map",
            {"a": True},
            "top.f.a: must be text, not true (write it in quotes)",
            id="true",
        ),
        pytest.param("text_map", {1: "a"}, "top.f: the key 1 must be text", id="number as key"),
        pytest.param(
            "quantity_map",
            {"m": "1Mk"},
            'top.f.m: "1Mk": unable to parse quantity\'s suffix',
            id="suffix",
        ),
        pytest.param(
            "quantity_map", {"m": None}, "top.f.m: must be a quantity, not null", id="null"
        ),
        pytest.param("quantity_map", "x", 'top.f: must be a mapping, not "x"', id="text as map"),
        pytest.param("integers", 1, "top.f: must be a list, not 1", id="number as list"),
        pytest.param("integers", [True], "top.f[0]: must be a whole number, not true", id="flag"),
        pytest.param("required_text", None, "top.f: must be given", id="nothing"),
        pytest.param("required_text", "", "top.f: must be given", id="empty text"),
        pytest.param("required_text", 5, "top.f: must be text, not 5 (write it in quotes)", id="5"),
    ],
)
def test_wrong_field(method: str, value: object, problem: str) -> None:
    section = _section({"f": value})
    getattr(section, method)("f")

    assert section.problems.sentences() == (problem,)


def test_wrong_limits_choices_and_durations() -> None:
    section = _section(
        {"low": 0, "high": 9, "text": "5", "colour": "green", "t": "5", "zero": "0s"}
    )
    section.integer("low", 1, 1)
    section.integer("high", 1, 1, 8)
    section.integer("text", 1)
    section.choice("colour", Colour.RED)
    section.seconds("t", 1.0)
    section.seconds("zero", 1.0)

    assert section.problems.sentences() == (
        "top.low: must be at least 1, not 0",
        "top.high: must be at most 8, not 9",
        'top.text: must be a whole number, not "5"',
        'top.colour: must be one of "red", "blue", not "green"',
        'top.t: must be a duration such as 5s or 1m30s, not "5"',
        'top.zero: must be longer than 0, not "0s"',
    )


def test_refusal_names_every_problem() -> None:
    section = _section({"a": 1, "b": 2})
    section.refuse_unknown(["b"])
    section.text("b")

    with pytest.raises(DocumentError) as refused:
        section.problems.refuse()

    assert refused.value.problems == (
        "top.a: unknown key",
        "top.b: must be text, not 2 (write it in quotes)",
    )
    assert str(refused.value) == "\n".join(refused.value.problems)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("5s", 5.0), ("1h2m3.5s", 3723.5), ("-1m", -60.0), ("250ms", 0.25), ("7us", 7e-6)],
)
def test_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "1d", "1 s", "1s ", "1..5s", "+", "1m30"])
def test_wrong_duration(text: str) -> None:
    with pytest.raises(DurationSyntaxError, match="must be a duration"):
        parse_duration(text)
