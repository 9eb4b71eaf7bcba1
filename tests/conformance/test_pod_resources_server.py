"""Recordings of the kubelet's pod resources server: which pods and containers, which text."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.replay.recordings import Recording, read_recordings
from numalign.replay.unit.admission.pod_resources import pod_resources_server_answer

PATH = Path(__file__).parent / "recordings" / "admission" / "podresources.jsonl.gz"
RECORDED = list(read_recordings(PATH))


def test_there_are_recordings_of_every_call() -> None:
    calls = [recording.record["input"]["call"] for recording in RECORDED]

    assert len(calls) == 41
    assert set(calls) == {"List", "Get", "GetAllocatableResources"}


@pytest.mark.parametrize("recording", [pytest.param(r, id=r.name) for r in RECORDED])
async def test_the_server_answers_as_recorded(recording: Recording) -> None:
    assert await pod_resources_server_answer(recording.record) == recording.record["expected"]
