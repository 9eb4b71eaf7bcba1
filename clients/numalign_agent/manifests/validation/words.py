"""Checks on single words and numbers, and how the API server says what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from numalign.errors import FieldViolation
from numalign.kube.names import MAX_LABEL, check_subdomain
from numalign.kube.violations import invalid, required, unsupported
from numalign.model.quoting import quoted

Problems = Iterator[FieldViolation]

_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_PORT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")

_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character"
)

MAX_PORT = 65535


def check_qualified(path: str, value: str) -> Problems:
    """A key of labels, annotations or taints, perhaps behind a DNS name and a slash."""
    prefix, slash, name = value.rpartition("/")
    if slash:
        yield from check_subdomain(path, prefix)
    if len(name) > MAX_LABEL:
        yield invalid(path, value, f"name part must be no more than {MAX_LABEL} characters")
    if re.fullmatch(_QUALIFIED, name) is None:
        yield invalid(path, value, _QUALIFIED_TEXT)


def check_label_value(path: str, value: str) -> Problems:
    """The value of a label."""
    if len(value) > MAX_LABEL:
        yield invalid(path, value, f"must be no more than {MAX_LABEL} characters")
    if re.fullmatch(_LABEL_VALUE, value) is None:
        yield invalid(path, value, _VALUE_TEXT)


def check_port(path: str, value: int | str) -> Problems:
    """A port: a number, or the name of one."""
    if isinstance(value, str):
        if len(value) > 15 or not _PORT_NAME.match(value) or "--" in value or value.isdigit():
            yield invalid(path, value, "must be the name of a port: at most 15 of a-z, 0-9 and -")
    elif not 1 <= value <= MAX_PORT:
        yield wrong_number(path, value, f"must be between 1 and {MAX_PORT}, inclusive")


def check_at_least(path: str, value: int | None, lowest: int) -> Problems:
    """A number that must not be below `lowest`; None is fine."""
    if value is not None and value < lowest:
        relation = "greater than or equal to" if lowest == 0 else "at least"
        yield wrong_number(path, value, f"must be {relation} {lowest}")


def check_one_of(path: str, value: str | None, words: Sequence[str]) -> Problems:
    """One of the words; none at all is required."""
    if not value:
        yield required(path)
    elif value not in words:
        yield unsupported(path, value, words)


def wrong_number(path: str, value: int, detail: str) -> FieldViolation:
    """A number that must not be that number."""
    return FieldViolation(path, f"Invalid value: {value}: {detail}")


def forbidden(path: str, detail: str) -> FieldViolation:
    """A field that must not be there."""
    return FieldViolation(path, f"Forbidden: {detail}")


def not_found(path: str, name: str) -> FieldViolation:
    """A name of something that is not there."""
    return FieldViolation(path, f"Not found: {quoted(name)}")
