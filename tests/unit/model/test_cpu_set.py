from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError

_ids = st.frozensets(st.integers(0, 300))


@given(_ids)
def test_a_set_survives_its_text(ids: frozenset[int]) -> None:
    cpus = CpuSet.of(ids)

    assert CpuSet.parse(str(cpus)) == cpus
    assert list(cpus) == sorted(ids)
    assert len(cpus) == len(ids)
    assert bool(cpus) is bool(ids)


@given(_ids, _ids)
def test_operations_are_those_of_sets(a: frozenset[int], b: frozenset[int]) -> None:
    p, q = CpuSet.of(a), CpuSet.of(b)

    assert set(p | q) == a | b
    assert set(p & q) == a & b
    assert set(p - q) == a - b
    assert p.isdisjoint(q) is a.isdisjoint(b)
    assert p.issubset(q) is a.issubset(b)
    assert all((cpu in p) is (cpu in a) for cpu in range(301))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("1048576", 'strconv.Atoi: parsing "1048576": value out of range', id="id"),
        pytest.param("0-9999999999", 'strconv.Atoi: parsing "9999999999": value out of range',
                     id="range"),
        pytest.param("1" * 5000, f'strconv.Atoi: parsing "{"1" * 5000}": value out of range',
                     id="many-digits"),
        pytest.param("3--2", 'invalid range "3--2" (3 > -2)', id="negative-end"),
        pytest.param("-1", 'strconv.Atoi: parsing "": invalid syntax', id="negative"),
    ],
)  # fmt: skip
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(CpuSetSyntaxError) as caught:
        CpuSet.parse(text)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1048575", [1048575], id="largest"),
        pytest.param("0" * 5000 + "7", [7], id="leading-zeros"),
    ],
)
def test_edges_that_parse(text: str, expected: list[int]) -> None:
    assert list(CpuSet.parse(text)) == expected
