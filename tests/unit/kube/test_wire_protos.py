"""The Kubernetes interfaces: names and numbers of the wire, and all modules in one process."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf.descriptor import FieldDescriptor, FileDescriptor

ROOT = Path(__file__).parents[3]
WIRE = ROOT / "docs" / "spec" / "wire"
GENERATED = sorted(
    ".".join(path.relative_to(ROOT / "service").with_suffix("").parts)
    for path in (ROOT / "service" / "numalign").rglob("*_pb2*.py")
)
INTERFACES = {
    "deviceplugin_v1beta1": "numalign.kube.deviceplugin.v1beta1.api_pb2",
    "pluginregistration_v1": "numalign.kube.pluginregistration.v1.api_pb2",
}
SUBSETS = {"nri_v1alpha1": "numalign.kube.nri.v1alpha1.api_pb2"}


def rows(name: str, *kinds: str) -> set[tuple[str, ...]]:
    with (WIRE / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return {
            tuple(row.values())
            for row in csv.DictReader(file, delimiter="\t")
            if row["kind"] in kinds
        }


def described(file: FileDescriptor) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for message in file.message_types_by_name.values():
        if not message.fields:
            found.add(("message", message.full_name, "", "", ""))
        for field in message.fields:
            found.add(("field", message.full_name, str(field.number), field.name, kind(field)))
    for service in file.services_by_name.values():
        for method in service.methods:
            answer = ("stream " if method.server_streaming else "") + method.output_type.full_name
            path = f"/{service.full_name}/{method.name}"
            found.add(("rpc", path, "", method.input_type.full_name, answer))
    return found


def kind(field: FieldDescriptor) -> str:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields_by_name["key"], message.fields_by_name["value"]
        return f"map<{kind(key)},{kind(value)}>"
    scalars = {
        FieldDescriptor.TYPE_BOOL: "bool",
        FieldDescriptor.TYPE_STRING: "string",
        FieldDescriptor.TYPE_INT32: "int32",
        FieldDescriptor.TYPE_INT64: "int64",
        FieldDescriptor.TYPE_UINT32: "uint32",
        FieldDescriptor.TYPE_UINT64: "uint64",
    }
    named = message if message is not None else field.enum_type
    name = scalars[field.type] if named is None else named.full_name
    return f"repeated {name}" if field.is_repeated else name


@pytest.mark.parametrize("name", INTERFACES)
def test_interface_is_that_of_the_wire(name: str) -> None:
    module: ModuleType = importlib.import_module(INTERFACES[name])

    assert rows(name, "field", "message", "rpc") == described(module.DESCRIPTOR)


@pytest.mark.parametrize("name", SUBSETS)
def test_subset_says_nothing_that_the_wire_does_not(name: str) -> None:
    module: ModuleType = importlib.import_module(SUBSETS[name])
    numbers = {
        ("enum", enum.full_name, str(value.number), value.name, "")
        for enum in module.DESCRIPTOR.enum_types_by_name.values()
        for value in enum.values
    }
    on_the_wire = rows(name, "field", "message", "enum")

    assert described(module.DESCRIPTOR) <= on_the_wire
    assert numbers <= on_the_wire


def test_all_generated_modules_live_in_one_process() -> None:
    modules = [importlib.import_module(name) for name in GENERATED]

    assert len(modules) > 10
