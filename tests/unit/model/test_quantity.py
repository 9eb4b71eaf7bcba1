from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.model.quantity import (
    ZERO,
    Format,
    Quantity,
    QuantitySyntaxError,
    is_whole_cpus,
)

_SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
}  # fmt: skip
_texts = st.builds(
    lambda sign, whole, fraction, suffix: sign + whole + fraction + suffix,
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 8 * 10**6 - 1).map(str),
    st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,12}", fullmatch=True)),
    st.sampled_from(sorted(_SUFFIXES)),
)


def _exact(text: str) -> Fraction:
    number = text.rstrip("numkKMGTi")
    return Fraction(number) * _SUFFIXES[text[len(number) :]]


def _rounded_away(number: Fraction) -> int:
    whole = -(-abs(number.numerator) // number.denominator)
    return whole if number > 0 else -whole


@given(_texts)
def test_the_number_is_exact_to_a_billionth(text: str) -> None:
    quantity = Quantity.parse(text)

    assert quantity.nanos == _rounded_away(_exact(text) * 10**9)
    assert quantity.value() == _rounded_away(Fraction(quantity.nanos, 10**9))
    assert quantity.milli_value() == _rounded_away(Fraction(quantity.nanos, 10**6))
    assert quantity.sign() == (quantity.nanos > 0) - (quantity.nanos < 0)
    assert quantity.is_zero() == (quantity.nanos == 0)


@given(_texts)
def test_the_canonical_text_is_the_same_number_and_stays_as_it_is(text: str) -> None:
    canonical = Quantity.parse(text).canonical()

    assert Quantity.parse(canonical) == Quantity.parse(text)
    assert Quantity.parse(canonical).canonical() == canonical
    assert str(Quantity.parse(text)) == canonical


@given(_texts, _texts)
def test_adding_and_ordering_follow_the_numbers(a: str, b: str) -> None:
    p, q = Quantity.parse(a), Quantity.parse(b)

    assert (p + q).nanos == p.nanos + q.nanos
    assert (p - q) + q == p
    assert p + -p == ZERO
    assert (p < q, p <= q, p > q, p >= q, p == q) == (
        p.nanos < q.nanos, p.nanos <= q.nanos, p.nanos > q.nanos, p.nanos >= q.nanos,
        p.nanos == q.nanos,
    )  # fmt: skip


def test_equal_numbers_are_one_key_whatever_their_text() -> None:
    assert len({Quantity.parse(text) for text in ("1", "1000m", "1.0", "1e0", "0.001k")}) == 1
    assert Quantity.parse("1") != 1


@pytest.mark.parametrize(
    ("text", "other", "canonical", "form", "as_int64"),
    [
        pytest.param("0", "1Gi", "1Gi", Format.BINARY_SI, 1 << 30, id="zero-takes-the-format"),
        pytest.param("1Gi", "0", "1Gi", Format.BINARY_SI, 1 << 30, id="adding-zero"),
        pytest.param("1Gi", "1M", "1074741824", Format.BINARY_SI, 1074741824, id="first-format"),
        pytest.param("500m", "500m", "1", Format.DECIMAL_SI, None, id="kept-in-thousandths"),
        pytest.param("2", "0m", "2", Format.DECIMAL_SI, 2, id="zero-does-not-refine"),
        pytest.param("2", "1m", "2001m", Format.DECIMAL_SI, None, id="finer-place"),
        pytest.param("1Pi", "1", "1125899906842625", Format.BINARY_SI, None, id="big-stays-big"),
        pytest.param("9E", "9E", "18E", Format.DECIMAL_SI, None, id="past-64-bits"),
        pytest.param("1e3", "1e3", "2e3", Format.DECIMAL_EXPONENT, 2000, id="exponents"),
    ],
)
def test_sums_keep_the_first_format(
    text: str, other: str, canonical: str, form: Format, as_int64: int | None
) -> None:
    total = Quantity.parse(text) + Quantity.parse(other)

    assert (total.canonical(), total.format, total.as_int64()) == (canonical, form, as_int64)


@pytest.mark.parametrize(
    ("quantity", "canonical", "as_int64"),
    [
        pytest.param(Quantity.from_int(1536, Format.BINARY_SI), "1536", 1536, id="kib-not-whole"),
        pytest.param(Quantity.from_int(2048, Format.BINARY_SI), "2Ki", 2048, id="kib"),
        pytest.param(Quantity.from_int(1000, Format.BINARY_SI), "1k", 1000, id="below-1024"),
        pytest.param(Quantity.from_int(1 << 30), "1073741824", 1 << 30, id="decimal"),
        pytest.param(Quantity.from_int(-5), "-5", -5, id="negative"),
        pytest.param(Quantity.from_int(1 << 63), "9223372036854775808", None, id="too-large"),
        pytest.param(
            Quantity.from_int(1 << 73, Format.BINARY_SI), "8192Ei", None, id="last-suffix"
        ),
        pytest.param(Quantity.from_milli(1500), "1500m", None, id="thousandths"),
        pytest.param(Quantity.from_milli(2000), "2", None, id="whole-thousandths"),
    ],
)
def test_made_from_numbers(quantity: Quantity, canonical: str, as_int64: int | None) -> None:
    assert (quantity.canonical(), quantity.as_int64()) == (canonical, as_int64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("1" * 1025, "unable to parse numeric part of quantity", id="too-long"),
        pytest.param("Ei", "unable to parse numeric part of quantity", id="no-digits"),
        pytest.param("1e1001", "unable to parse quantity's suffix", id="exponent-too-large"),
        pytest.param("1e99999999999", "unable to parse quantity's suffix", id="absurd-exponent"),
        pytest.param("1Zi", "quantities must match the regular expression "
                     "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'", id="unknown-letter"),
    ],
)  # fmt: skip
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(QuantitySyntaxError) as caught:
        Quantity.parse(text)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        pytest.param("1e-99999999999", 1, id="tiny"),
        pytest.param("-1e-99999999999", -1, id="tiny-negative"),
        pytest.param("0e-99999999999", 0, id="zero"),
        pytest.param("0.0e-3000", 0, id="zero-with-a-point"),
    ],
)
def test_exponents_far_below_cost_nothing(text: str, nanos: int) -> None:
    assert Quantity.parse(text).nanos == nanos


def test_the_largest_accepted_text_can_be_printed() -> None:
    quantity = Quantity.parse("9" * 1018 + "e1000")

    assert Quantity.parse("1e1000").canonical() == "10e999"
    assert len(quantity.canonical()) > 1000


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        pytest.param("2", True, id="plain"),
        pytest.param("2000m", True, id="thousandths"),
        pytest.param("1500m", False, id="half"),
        pytest.param("999999u", True, id="rounding-reaches-one"),
        pytest.param("0", True, id="none"),
    ],
)
def test_whole_cpus(text: str, whole: bool) -> None:
    assert is_whole_cpus(Quantity.parse(text)) is whole


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("8Ei", str(2**63 - 1), id="just-above"),
        pytest.param("-9Ei", str(-(2**63) + 1), id="negative"),
        pytest.param("9E", "9E", id="decimal-is-not-capped"),
    ],
)
def test_binary_quantities_are_capped_at_64_bits(text: str, canonical: str) -> None:
    assert Quantity.parse(text).canonical() == canonical
