"""What a process says of its configuration: whole, with the machine, without secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.unit.process.observed_world import document, settings

from numalign.config.loader import load_settings
from numalign.config.settings import MachineInline, Service
from numalign.process.node import Node
from numalign.v1 import control_pb2 as ct
from numalign.v1.control_pb2_grpc import ControlStub


async def test_the_document_is_the_configuration_again(tmp_path: Path) -> None:
    written = {**document(tmp_path), "staticPodURLHeader": {"Authorization": ["Bearer abc"]}}
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(written["numalign"].pop("machine")))
    written["numalign"]["machine"] = {"file": "machine.json"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(written))
    given = load_settings(config, {}, False)
    node = await Node.open(given)
    try:
        stub = ControlStub(node.channel(Service.CPU))
        answer = await stub.GetConfiguration(ct.GetConfigurationRequest())
    finally:
        await node.close()
    assert "Bearer" not in answer.document
    again = tmp_path / "again.json"
    again.write_text(answer.document)
    read = load_settings(again, {}, False)
    assert isinstance(read.machine, MachineInline)
    assert read.machine.machine.cpu_count() == 16
    assert replace(read, machine=given.machine, kubelet=given.kubelet) == given


async def test_a_reload_changes_the_answer(tmp_path: Path) -> None:
    before = settings(tmp_path)
    after = replace(before, queue_depth=7)
    node = await Node.open(before, lambda: after)
    try:
        stub = ControlStub(node.channel(Service.TOPOLOGY))
        await stub.Reload(ct.ReloadRequest())
        answer = await stub.GetConfiguration(ct.GetConfigurationRequest())
    finally:
        await node.close()
    assert json.loads(answer.document)["numalign"]["queueDepth"] == 7
