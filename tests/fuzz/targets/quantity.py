"""Amounts of resources."""

from __future__ import annotations

from tests.fuzz.recorded import unit_inputs
from tests.fuzz.target import Target

from numalign.model.quantity import Quantity, QuantitySyntaxError


def run(data: bytes) -> None:
    """Read an amount; its canonical text must stand for the same one."""
    quantity = Quantity.parse(data.decode("utf-8", "surrogateescape"))
    again = Quantity.parse(str(quantity))
    assert (again.value(), again.milli_value()) == (quantity.value(), quantity.milli_value())
    assert str(again) == str(quantity)


TARGET = Target(
    name="quantity",
    run=run,
    documented=(QuantitySyntaxError,),
    seeds=tuple(
        given["text"].encode("utf-8", "surrogatepass")
        for given in unit_inputs("quantity")
        if "text" in given
    ),
)
