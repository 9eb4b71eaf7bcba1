"""Pods between Kubernetes' JSON (or YAML) objects and messages.

Separate from decoding because it keeps everything the message has a field for, whether a
decision reads it or not, and because only tools and manifests need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from numalign.errors import FieldViolation, InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.json_plan import FieldPlan, Kind, plan_of
from numalign.kube.rfc3339 import format_time, parse_time
from numalign.kube.violations import invalid, unsupported
from numalign.model.quantity import Quantity

_WORDS = {
    Kind.TEXT: "text",
    Kind.INTEGER: "an integer",
    Kind.BOOLEAN: "true or false",
    Kind.QUANTITY: "a quantity, as text or a number",
    Kind.TIME: "a time, as text",
    Kind.OBJECT: "an object",
}


def pod_from_json(
    obj: Mapping[str, object], *, ignored: list[str] | None = None, path: str = ""
) -> core_pb2.Pod:
    """The message for a decoded JSON or YAML object of kind Pod.

    A null counts as absent. Paths of keys that the message has no field for are appended to
    `ignored`. `path` is put in front of every path, for a pod inside a larger document.
    Raises InvalidInput naming every field whose value has the wrong type or form; whether
    the pod makes sense is for `pod_decode`.
    """
    message = core_pb2.Pod()
    _read(message, "Pod", obj, ignored, path)
    return message


def node_from_json(
    obj: Mapping[str, object], *, ignored: list[str] | None = None, path: str = ""
) -> core_pb2.Node:
    """The message for a decoded JSON or YAML object of kind Node, as `pod_from_json` does."""
    message = core_pb2.Node()
    _read(message, "Node", obj, ignored, path)
    return message


def pod_to_json(message: core_pb2.Pod) -> dict[str, Any]:
    """The JSON object of a pod: zero values left out, keys in order of field number.

    Fields that the message type does not know are not shown. Raises ValueError for a time
    that has no text.
    """
    return {"apiVersion": "v1", "kind": "Pod", **_object_of(message)}


def _read(
    message: Message,
    kind: str,
    obj: Mapping[str, object],
    ignored: list[str] | None,
    path: str,
) -> None:
    reader = _Reader()
    for key, word in (("apiVersion", "v1"), ("kind", kind)):
        if obj.get(key) not in (None, word):  # a list or mapping has no hash
            reader.violations.append(unsupported(_at(path, key), str(obj[key]), (word,)))
    fields = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}
    reader.fill(message, fields, path)
    if reader.violations:
        raise InvalidInput(*reader.violations)
    if ignored is not None:
        ignored.extend(reader.ignored)


class _Reader:
    """One pass over an object: what is wrong and what is left out, with paths."""

    __slots__ = ("ignored", "violations")

    def __init__(self) -> None:
        self.violations: list[FieldViolation] = []
        self.ignored: list[str] = []

    def fill(self, message: Message, obj: Mapping[str, object], path: str) -> None:
        plan = plan_of(message.DESCRIPTOR)
        inline = [field for field in plan.values() if field.is_inline]
        inner: dict[str, object] = {}
        for key, value in obj.items():
            field = plan.get(key)
            if field is not None and not field.is_inline:
                if value is not None:
                    self._set(message, field, value, _at(path, key))
            elif inline and key in _plan_of_object(inline[0]):
                inner[key] = value
            else:
                self.ignored.append(_at(path, str(key)))
        if inner:
            self.fill(getattr(message, inline[0].name), inner, path)

    def _set(self, message: Message, field: FieldPlan, value: object, path: str) -> None:
        if field.is_map:
            self._set_map(message, field, value, path)
        elif field.is_list:
            self._set_list(message, field, value, path)
        elif field.message is None:
            scalar = self._scalar(field, value, path)
            if scalar is not None:
                setattr(message, field.name, scalar)
        else:
            target = getattr(message, field.name)
            target.SetInParent()
            self._set_message(target, field, value, path)

    def _set_list(self, message: Message, field: FieldPlan, value: object, path: str) -> None:
        if not isinstance(value, list | tuple):
            self.violations.append(invalid(path, _shown(value), "must be a list"))
            return
        target = getattr(message, field.name)
        for index, item in enumerate(value):
            at = f"{path}[{index}]"
            if field.message is not None:
                self._set_message(target.add(), field, item, at)
            else:
                scalar = self._scalar(field, item, at)
                if scalar is not None:
                    target.append(scalar)

    def _set_map(self, message: Message, field: FieldPlan, value: object, path: str) -> None:
        if not isinstance(value, Mapping):
            self.violations.append(invalid(path, _shown(value), "must be an object"))
            return
        target = getattr(message, field.name)
        for key, item in value.items():
            at = f"{path}[{key}]"
            if not isinstance(key, str) or not _is_unicode(key):
                self.violations.append(invalid(path, _shown(key), "keys must be text"))
                continue
            if field.message is not None:
                self._set_message(target[key], field, item, at)
            else:
                # A null is the empty text here: a map has no absent values.
                scalar = "" if item is None else self._scalar(field, item, at)
                if scalar is not None:
                    target[key] = scalar

    def _set_message(self, target: Message, field: FieldPlan, value: object, path: str) -> None:
        if field.kind is Kind.OBJECT and isinstance(value, Mapping):
            self.fill(target, value, path)
            return
        try:
            if isinstance(target, core_pb2.Quantity) and _is_quantity_like(value):
                text = _number_text(value) if isinstance(value, float) else str(value).strip()
                Quantity.parse(text)
                target.string = text
            elif isinstance(target, core_pb2.Time) and isinstance(value, str):
                target.CopyFrom(parse_time(value))
            else:
                self._wrong_kind(field, value, path)
        except ValueError as error:
            self.violations.append(invalid(path, _shown(value), str(error)))

    def _scalar(self, field: FieldPlan, value: object, path: str) -> str | int | bool | None:
        match field.kind, value:
            case Kind.TEXT, str() if _is_unicode(value):
                return value
            case Kind.BOOLEAN, bool():
                return value
            case Kind.INTEGER, int() if not isinstance(value, bool):
                if field.lowest <= value <= field.highest:
                    return value
                detail = f"must be between {field.lowest} and {field.highest}"
                self.violations.append(invalid(path, _shown(value), detail))
                return None
        self._wrong_kind(field, value, path)
        return None

    def _wrong_kind(self, field: FieldPlan, value: object, path: str) -> None:
        self.violations.append(invalid(path, _shown(value), f"must be {_WORDS[field.kind]}"))


def _is_quantity_like(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _number_text(number: float) -> str:
    """A number as JSON writes it: `1.0` and `1e3` have no point left in them."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e21 else repr(number)


def _is_unicode(text: str) -> bool:
    """Whether the text can be encoded: JSON can spell halves of characters."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _plan_of_object(field: FieldPlan) -> Mapping[str, FieldPlan]:
    return plan_of(_type_of(field))


def _type_of(field: FieldPlan) -> Descriptor:
    if field.message is None:
        raise TypeError(f"{field.name} is no message field")
    return field.message


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _shown(value: object) -> str:
    """A value as a message shows it: JSON's words for the plain ones, short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    return text if len(text) <= 64 else text[:61] + "..."


def _object_of(message: Message) -> dict[str, Any]:
    obj: dict[str, Any] = {}
    for field in plan_of(message.DESCRIPTOR).values():
        value = getattr(message, field.name)
        if field.is_map:
            if value:
                obj[field.json_name] = {key: _value_of(value[key]) for key in sorted(value)}
        elif field.is_list:
            if value:
                obj[field.json_name] = [_value_of(item) for item in value]
        elif not (message.HasField(field.name) if field.has_presence else value):
            continue
        elif field.is_inline:
            obj.update(_object_of(value))
        elif not (field.kind is Kind.TIME and value == core_pb2.Time()):
            # An empty time is how the zero time travels, and that is no moment.
            obj[field.json_name] = _value_of(value)
    return obj


def _value_of(value: object) -> object:
    if isinstance(value, core_pb2.Quantity):
        return value.string
    if isinstance(value, core_pb2.Time):
        return format_time(value)
    return _object_of(value) if isinstance(value, Message) else value
