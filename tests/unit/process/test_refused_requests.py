"""What a node answers to requests that nobody should send: the field, and nothing kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError
from tests.unit.process.observed_world import pod, settings

from numalign.config.settings import Service
from numalign.process.node import Node
from numalign.rpc.status import violations_of
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc


@pytest.fixture
async def admission(tmp_path: Path) -> AsyncIterator[ad_grpc.AdmissionAsyncStub]:
    node = await Node.open(settings(tmp_path))
    try:
        await node.serving()
        yield ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))
    finally:
        await node.close()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param({"explain": 99}, "explain", id="explain"),
        pytest.param({"explain": -1}, "explain", id="explain below"),
        pytest.param({"operation": 99}, "operation", id="operation"),
        pytest.param({"owner": "a\nb"}, "owner", id="owner of two lines"),
        pytest.param({"owner": "a" * 254}, "owner", id="long owner"),
    ],
)
async def test_fields_that_cannot_be(
    admission: ad_grpc.AdmissionAsyncStub, fields: dict[str, int | str], path: str
) -> None:
    with pytest.raises(AioRpcError) as refused:
        await admission.Admit(ad.AdmitRequest(pod=pod("a"), **fields))  # type: ignore[arg-type]

    assert refused.value.code() is StatusCode.INVALID_ARGUMENT
    assert [v.field for v in violations_of(refused.value)] == [path]
    assert not (await admission.ListAdmissions(ad.ListAdmissionsRequest())).admissions


@pytest.mark.parametrize("uid", ["../../etc/passwd", "a\0b", "a b", "x" * 500_000])
async def test_uids_that_are_no_uids(admission: ad_grpc.AdmissionAsyncStub, uid: str) -> None:
    message = pod("a")
    message.metadata.uid = uid
    with pytest.raises(AioRpcError) as refused:
        await admission.Admit(ad.AdmitRequest(pod=message))

    assert refused.value.code() is StatusCode.INVALID_ARGUMENT
    assert [v.field for v in violations_of(refused.value)] == ["metadata.uid"]
    assert not (await admission.ListAdmissions(ad.ListAdmissionsRequest())).admissions
