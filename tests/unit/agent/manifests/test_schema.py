"""The table of a pod's fields against the models of the official client."""

from __future__ import annotations

import datetime as dt
import typing
from typing import Any

from kubernetes.client.models.v1_pod import V1Pod

from numalign_agent.manifests.schema import Scalar, fields_of, object_types

# Kinds that the models tell apart no further than text and number.
_WORDS = {
    Scalar.QUANTITY: "str",
    Scalar.TEXT: "str",
    Scalar.BOOLEAN: "bool",
    Scalar.INT32: "int",
    Scalar.INT64: "int",
    Scalar.TIME: "datetime",
    Scalar.INT_OR_TEXT: "int|str",
}


def test_the_table_says_what_the_official_client_says() -> None:
    theirs: dict[str, dict[str, str]] = {}
    _collect(V1Pod, theirs)
    del theirs["ObjectMeta"]["managedFields"], theirs["ManagedFieldsEntry"]

    ours = {
        object_type: {
            name: ("[]" if field.is_list else "{}" if field.is_map else "")
            + (field.object_type or _WORDS[field.scalar or Scalar.TEXT])
            for name, field in fields_of(object_type).items()
        }
        for object_type in object_types()
    }

    assert ours == theirs


def _collect(model: Any, into: dict[str, dict[str, str]]) -> None:
    name = _name(model)
    if name in into:
        return
    into[name] = {}
    for attribute, field in model.model_fields.items():
        into[name][field.serialization_alias or attribute] = _word(field.annotation, into)


def _word(annotation: Any, into: dict[str, dict[str, str]]) -> str:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _word(args[0], into)
    if origin is list:
        return f"[]{_word(args[0], into)}"
    if origin is dict:
        return f"{{}}{_word(args[1], into)}"
    if origin is typing.Union:
        return "|".join(_word(arg, into) for arg in args if arg is not type(None))
    if hasattr(annotation, "model_fields"):
        _collect(annotation, into)
        return _name(annotation)
    return "datetime" if annotation is dt.datetime else getattr(annotation, "__name__", "?")


def _name(model: Any) -> str:
    return str(model.__name__).removeprefix("Core").removeprefix("V1")
