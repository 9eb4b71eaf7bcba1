"""The document of a pod as Kubernetes shows it.

Separate from decoding, because a UID depends on spellings that nobody is shown.
"""

from __future__ import annotations

from typing import Any

from numalign.model.quantity import Quantity
from numalign_agent.manifests.schema import FieldType, Scalar, fields_of


def shown(document: dict[str, Any], object_type: str = "Pod") -> dict[str, Any]:
    """A copy without empty lists and mappings, with quantities in canonical form."""
    fields = fields_of(object_type)
    result: dict[str, Any] = {}
    for name, value in document.items():
        field = fields[name]
        showing = _shown_field(field, value)
        if field.keeps_zero or showing not in ([], {}):
            result[name] = showing
    return result


def _shown_field(field: FieldType, value: Any) -> Any:  # noqa: ANN401 - of any type
    if field.is_list:
        return [_shown_item(field, item) for item in value]
    if field.is_map:
        return {key: _shown_item(field, item) for key, item in value.items()}
    return _shown_item(field, value)


def _shown_item(field: FieldType, value: Any) -> Any:  # noqa: ANN401 - as above
    if field.scalar is None:
        return shown(value, field.object_type)
    if field.scalar is Scalar.QUANTITY:
        return Quantity.parse(value).canonical()
    return value
