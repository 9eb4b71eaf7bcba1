"""A reader of the pod resources interface, made from the published field numbers alone.

It knows nothing of numalign: its messages are built, in a pool of their own, from the table
of the interface in docs/spec/wire.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

TABLE = Path(__file__).parents[2] / "docs" / "spec" / "wire" / "podresources_v1.tsv"

_SCALARS = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
}


class Reader:
    """Calls one socket with stubs of its own; each method gives the parsed answer."""

    def __init__(self, socket: Path) -> None:
        pool, methods = _pool(TABLE)
        self._channel = grpc.insecure_channel(
            f"unix://{socket}", options=[("grpc.default_authority", "localhost")]
        )
        self._messages: dict[str, Any] = {}
        self._calls: dict[str, Any] = {}
        for path, (asked, answered) in methods.items():
            request = GetMessageClass(pool.FindMessageTypeByName(asked))
            response = GetMessageClass(pool.FindMessageTypeByName(answered))
            name = path.rpartition("/")[2]
            self._messages[name] = request
            self._calls[name] = self._channel.unary_unary(
                path,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=response.FromString,
            )

    def call(self, method: str, **fields: Any) -> Any:
        """Call a method of v1 with these request fields. Raises grpc.RpcError."""
        request = self._messages[method](**fields)
        return self._calls[method](request, timeout=60, wait_for_ready=True)

    def alpha_list(self) -> bytes:
        """The answer of v1alpha1 List as it came."""
        call: Any = self._channel.unary_unary("/v1alpha1.PodResourcesLister/List")
        answer: bytes = call(b"", timeout=60, wait_for_ready=True)
        return answer

    def close(self) -> None:
        self._channel.close()


def _pool(table: Path) -> tuple[DescriptorPool, dict[str, tuple[str, str]]]:
    file = FileDescriptorProto(name="reader.proto", package="v1", syntax="proto3")
    messages: dict[str, Any] = {}
    methods = {}
    for line in table.read_text().splitlines()[1:]:
        kind, name, number, given, answered = line.split("\t")
        if kind == "rpc":
            methods[name] = (given, answered)
            continue
        short = name.removeprefix("v1.")
        if short not in messages:
            messages[short] = file.message_type.add(name=short)
        if kind == "field":
            messages[short].field.append(_field(int(number), given, answered))
    pool = DescriptorPool()
    pool.Add(file)
    return pool, methods


def _field(number: int, name: str, kind: str) -> FieldDescriptorProto:
    repeated = kind.startswith("repeated ")
    kind = kind.removeprefix("repeated ")
    field = FieldDescriptorProto(
        name=name,
        number=number,
        label=FieldDescriptorProto.LABEL_REPEATED
        if repeated
        else FieldDescriptorProto.LABEL_OPTIONAL,
    )
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{kind}"
    return field
