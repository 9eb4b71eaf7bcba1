"""The messages against Kubernetes' table of field numbers and types."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from numalign.kube.core.v1 import core_pb2

_TABLE = Path(__file__).parents[3] / "docs" / "spec" / "wire" / "core_v1.tsv"
_SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_BOOL: "bool",
}


def _table() -> dict[tuple[str, int], tuple[str, str]]:
    rows = [line.split("\t") for line in _TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    return {(row[1].rpartition(".")[2], int(row[2])): (row[3], row[4]) for row in rows if row[2]}


def _type_of(field: FieldDescriptor) -> str:
    message = field.message_type
    if message is None:
        return _SCALARS[field.type]
    if message.GetOptions().map_entry:
        value = message.fields_by_name["value"]
        return f"map<string,{_type_of(value)}>"
    return message.name


def _short(type_text: str) -> str:
    """A type of the table without its packages."""
    if type_text.startswith("map<"):
        key, _, value = type_text[4:-1].partition(",")
        return f"map<{key},{value.rpartition('.')[2]}>"
    label, space, name = type_text.rpartition(" ")
    return f"{label}{space}{name.rpartition('.')[2]}"


def _messages() -> list[Descriptor]:
    return list(core_pb2.DESCRIPTOR.message_types_by_name.values())


def test_every_field_has_kubernetes_number_name_and_type() -> None:
    table = _table()
    wrong = []
    for message in _messages():
        for field in message.fields:
            is_list = field.is_repeated and not _type_of(field).startswith("map<")
            ours = (field.json_name, f"{'repeated ' if is_list else ''}{_type_of(field)}")
            name, type_text = table.get((message.name, field.number), ("", ""))
            if ours != (name, _short(type_text)):
                wrong.append((message.name, field.number, ours, (name, type_text)))

    assert wrong == []
    assert len(_messages()) > 40


def test_what_the_subset_does_not_name_is_passed_on() -> None:
    # PodSpec.hostname (16) has no field here; Pod.spec is 2.
    hostname = b"\x82\x01\x04host"
    data = b"\x12" + bytes([len(hostname)]) + hostname

    assert core_pb2.Pod.FromString(data).SerializeToString() == data
