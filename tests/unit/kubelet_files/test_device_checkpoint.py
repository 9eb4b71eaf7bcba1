"""Device manager state files beyond the recordings: reference checksums and byte answers."""

from __future__ import annotations

import json

import pytest

from numalign.kubelet_files.device_checkpoint import (
    DeviceCheckpoint,
    DeviceEntry,
    device_hash_input,
    read_device_checkpoint,
    write_device_checkpoint,
)
from numalign.kubelet_files.errors import CorruptCheckpoint, UndecodableCheckpoint
from numalign.model.ids import DeviceId, PodUid

HELD = DeviceCheckpoint(
    entries=(
        DeviceEntry(
            pod_uid=PodUid("u"),
            container="c",
            resource="v.io/r",
            ids_by_node={0: (DeviceId("a"), DeviceId("b")), -1: (DeviceId("x"),)},
            allocate_response=bytes([10, 0]),
        ),
    ),
    registered={"v.io/r": (DeviceId("a"), DeviceId("b"))},
)


@pytest.mark.parametrize(
    ("value", "checksum"),
    [
        pytest.param(DeviceCheckpoint(), 3467439661, id="empty"),
        pytest.param(HELD, 2868639799, id="held"),
    ],
)
def test_reference_checksums(value: DeviceCheckpoint, checksum: int) -> None:
    assert json.loads(write_device_checkpoint(value))["Checksum"] == checksum


def test_what_is_written_reads_back() -> None:
    read = read_device_checkpoint(write_device_checkpoint(HELD))

    assert read.entries == HELD.entries
    assert read.registered == HELD.registered
    assert read.hash_input == device_hash_input(HELD)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('"CgA="', id="base64"),
        pytest.param(r'"Cg\r\nA="', id="base64-with-line-end"),
        pytest.param("[10,0]", id="numbers"),
    ],
)
def test_spellings_of_the_answer(answer: str) -> None:
    text = write_device_checkpoint(HELD).replace('"CgA="', answer)

    assert read_device_checkpoint(text).entries == HELD.entries


@pytest.mark.parametrize("answer", ['"CgA"', '"C"', '"*"', "[256]", "true"])
def test_undecodable_answer(answer: str) -> None:
    text = write_device_checkpoint(HELD).replace('"CgA="', answer)

    with pytest.raises(UndecodableCheckpoint):
        read_device_checkpoint(text)


def test_checksum_must_be_there() -> None:
    with pytest.raises(CorruptCheckpoint):
        read_device_checkpoint('{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}}}')
