"""Typed access to one mapping of a decoded document.

A section knows its path, so that every problem names the field and shows its value. Reading
never raises: a wrong field is recorded and its default returned, so that the next field is
looked at too; whoever reads refuses at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from numalign.document.duration import DurationSyntaxError, parse_duration
from numalign.document.problems import Problems
from numalign.model.quantity import Quantity, QuantitySyntaxError
from numalign.model.quoting import quoted

Choice = TypeVar("Choice", bound=StrEnum)


class Section:
    """One mapping at `path`. A field that is absent or null counts as not given."""

    __slots__ = ("_fields", "path", "problems")

    def __init__(self, value: object, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._fields: Mapping[str, object] = {}
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    problems.add(path, f"the key {shown(key)} must be text")
            self._fields = {key: item for key, item in value.items() if isinstance(key, str)}
        elif value is not None:
            problems.add(path, f"must be a mapping, not {shown(value)}")

    def __contains__(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def names(self) -> tuple[str, ...]:
        """The keys, in the order of the document."""
        return tuple(self._fields)

    def raw(self, key: str) -> object:
        """The value of `key` as decoded; None where it is absent."""
        return self._fields.get(key)

    def at(self, key: str) -> str:
        """The path of `key`."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, reason: str) -> None:
        """Record that `key` is wrong."""
        self.problems.add(self.at(key), reason)

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Record every key that is not in `known`."""
        allowed = frozenset(known)
        for key in self._fields:
            if key not in allowed:
                self.wrong(key, "unknown key")

    def section(self, key: str) -> Section:
        """The mapping at `key`; an empty one where it is absent."""
        return Section(self._fields.get(key), self.at(key), self.problems)

    def text(self, key: str, default: str = "") -> str:
        """Text. A number or boolean is refused: it would have to be guessed how it was written."""
        value = self._fields.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        self.wrong(key, f"must be text, not {shown(value)}{_quote_it(value)}")
        return default

    def boolean(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self._fields.get(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        self.wrong(key, f"must be true or false, not {shown(value)}")
        return default

    def integer(
        self, key: str, default: int, minimum: int | None = None, maximum: int | None = None
    ) -> int:
        """A whole number from `minimum` to `maximum`, both included."""
        value = self._fields.get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            self.wrong(key, f"must be a whole number, not {shown(value)}")
            return default
        if minimum is not None and value < minimum:
            self.wrong(key, f"must be at least {minimum}, not {value}")
            return default
        if maximum is not None and value > maximum:
            self.wrong(key, f"must be at most {maximum}, not {value}")
            return default
        return value

    def required_integer(self, key: str, minimum: int) -> int:
        """A whole number that must be given."""
        if key not in self:
            self.wrong(key, "must be given")
        return self.integer(key, minimum, minimum)

    def required_text(self, key: str) -> str:
        """Text that must be given and not be empty."""
        text = self.text(key)
        if not text and isinstance(self._fields.get(key), str | None):
            self.wrong(key, "must be given")
        return text

    def choice(self, key: str, default: Choice) -> Choice:
        """One of the members of an enumeration, by value."""
        if key not in self:
            return default
        text = self.text(key, default.value)
        try:
            return type(default)(text)
        except ValueError:
            allowed = ", ".join(quoted(member.value) for member in type(default))
            self.wrong(key, f"must be one of {allowed}, not {quoted(text)}")
            return default

    def seconds(self, key: str, default: float) -> float:
        """A positive duration such as `500ms` or `1m30s`, in seconds."""
        if key not in self:
            return default
        text = self.text(key)
        if not isinstance(self.raw(key), str):
            return default
        try:
            seconds = parse_duration(text)
        except DurationSyntaxError as error:
            self.wrong(key, str(error))
            return default
        if seconds <= 0:
            self.wrong(key, f"must be longer than 0, not {quoted(text)}")
            return default
        return seconds

    def text_map(self, key: str) -> dict[str, str]:
        """A mapping from text to text."""
        inner = self.section(key)
        return {name: inner.text(name) for name in inner.names()}

    def quantity_map(self, key: str) -> dict[str, Quantity]:
        """A mapping from resource name to quantity; a plain number is a quantity too."""
        inner = self.section(key)
        quantities = {}
        for name in inner.names():
            quantity = inner.quantity(name)
            if quantity is not None:
                quantities[name] = quantity
        return quantities

    def quantity(self, key: str) -> Quantity | None:
        """A quantity; None where it is absent or wrong."""
        value = self._fields.get(key)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.wrong(key, f"must be a quantity, not {shown(value)}")
            return None
        try:
            return Quantity.parse(str(value))
        except QuantitySyntaxError as error:
            self.wrong(key, f"{shown(value)}: {error}")
            return None

    def items(self, key: str) -> Iterator[tuple[str, object]]:
        """The path and value of each entry of a list; none where it is absent."""
        value = self._fields.get(key)
        if value is None:
            return
        if not isinstance(value, list | tuple):
            self.wrong(key, f"must be a list, not {shown(value)}")
            return
        for index, item in enumerate(value):
            yield f"{self.at(key)}[{index}]", item

    def sections(self, key: str) -> Iterator[Section]:
        """Each entry of a list of mappings."""
        for path, item in self.items(key):
            if item is None:
                self.problems.add(path, "must be a mapping, not null")
            yield Section(item, path, self.problems)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        numbers = []
        for path, item in self.items(key):
            if isinstance(item, int) and not isinstance(item, bool):
                numbers.append(item)
            else:
                self.problems.add(path, f"must be a whole number, not {shown(item)}")
        return tuple(numbers)


def shown(value: object) -> str:
    """How a value is shown in a problem: text in quotes, containers by kind."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return str(value)


def _quote_it(value: object) -> str:
    return " (write it in quotes)" if isinstance(value, bool | int | float) else ""
