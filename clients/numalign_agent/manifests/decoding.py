"""From plain values to the document of a pod, by the table of its fields.

Separate from reading text, because pods of a list and pods over HTTP are decoded alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.errors import FieldViolation
from numalign_agent.manifests.scalars import WrongValue, scalar_of
from numalign_agent.manifests.schema import FieldType, Scalar, fields_of

MAX_VALUES = 200_000
"""Values of one pod that are looked at. YAML can say in few bytes what unfolds into billions."""


def decode(value: object, object_type: str = "Pod") -> tuple[dict[str, Any], list[FieldViolation]]:
    """The document, and every value that does not fit its field.

    Left out are unknown fields, nulls, zeros and empty objects that say the same as no value.
    Empty lists and mappings stay, and quantities keep their spelling: a UID depends on them.
    """
    decoder = _Decoder()
    document = decoder.read(value, object_type, "")
    return document, decoder.violations


_ZEROS: Mapping[Scalar, object] = {
    Scalar.BOOLEAN: False,
    Scalar.INT32: 0,
    Scalar.INT64: 0,
    Scalar.QUANTITY: "0",
}


class _Decoder:
    """One pass over an object."""

    __slots__ = ("_left", "violations")

    def __init__(self) -> None:
        self.violations: list[FieldViolation] = []
        self._left = MAX_VALUES

    def read(self, value: object, object_type: str, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self._wrong(path, "must be an object")
            return {}
        document: dict[str, Any] = {}
        for name, field in fields_of(object_type).items():
            given = value.get(name)
            if given is None:
                continue
            read = self._field(field, given, f"{path}.{name}" if path else name)
            if read or field.keeps_zero or field.is_list or field.is_map:
                document[name] = read
        return document

    def _field(self, field: FieldType, value: object, path: str) -> Any:  # noqa: ANN401 - of any type
        if field.is_list:
            return self._list(field, value, path)
        if field.is_map:
            return self._map(field, value, path)
        return self._single(field, value, path)

    def _list(self, field: FieldType, value: object, path: str) -> list[Any]:
        if not isinstance(value, list):
            self._wrong(path, "must be a list")
            return []
        return [self._item(field, item, f"{path}[{at}]") for at, item in enumerate(value)]

    def _map(self, field: FieldType, value: object, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self._wrong(path, "must be an object")
            return {}
        return {str(key): self._item(field, item, f"{path}[{key}]") for key, item in value.items()}

    def _item(self, field: FieldType, value: object, path: str) -> Any:  # noqa: ANN401 - as above
        if value is None:  # the zero value of its type: a list has no absent items
            return {} if field.scalar is None else _ZEROS.get(field.scalar, "")
        return self._single(field, value, path)

    def _single(self, field: FieldType, value: object, path: str) -> Any:  # noqa: ANN401 - as above
        self._left -= 1
        if self._left < 0:
            if self._left == -1:
                self.violations.append(FieldViolation(path, f"more than {MAX_VALUES} values"))
            return None
        if field.scalar is None:
            return self.read(value, field.object_type, path)
        try:
            return scalar_of(field.scalar, value)
        except WrongValue as error:
            self._wrong(path, str(error))
            return None

    def _wrong(self, path: str, must: str) -> None:
        self.violations.append(FieldViolation(path, must))
