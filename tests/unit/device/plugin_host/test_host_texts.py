"""The kubelet's words for plugins, letter by letter."""

from __future__ import annotations

import pytest
from grpc import StatusCode

from numalign.device.plugin_host import texts
from numalign.device.plugin_host.registration import registration_refusal
from numalign.plugins.texts import rpc_error


@pytest.mark.parametrize(
    ("version", "resource", "expected"),
    [
        pytest.param("v1beta1", "example.com/gpu", None, id="fine"),
        pytest.param(
            "v1alpha1",
            "example.com/gpu",
            'requested API version "v1alpha1" is not supported by kubelet. Supported version is '
            '["v1beta1"]',
            id="version",
        ),
        pytest.param("v1beta1", "gpu", 'the ResourceName "gpu" is invalid', id="no-slash"),
        pytest.param(
            "v1beta1",
            "kubernetes.io/gpu",
            'the ResourceName "kubernetes.io/gpu" is invalid',
            id="native",
        ),
        pytest.param(
            "v1beta1",
            "requests.example.com/gpu",
            'the ResourceName "requests.example.com/gpu" is invalid',
            id="quota",
        ),
        pytest.param(
            "v1beta1", 'a.b/"c"', 'the ResourceName "a.b/\\"c\\"" is invalid', id="quoted"
        ),
        pytest.param(
            "",
            "gpu",
            'requested API version "" is not supported by kubelet. Supported version is '
            '["v1beta1"]',
            id="version-first",
        ),
    ],
)
def test_register_refusals(version: str, resource: str, expected: str | None) -> None:
    assert registration_refusal(version, resource) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(StatusCode.CANCELLED, "Canceled", id="canceled"),
        pytest.param(StatusCode.UNKNOWN, "Unknown", id="unknown"),
        pytest.param(StatusCode.DEADLINE_EXCEEDED, "DeadlineExceeded", id="deadline"),
        pytest.param(StatusCode.INVALID_ARGUMENT, "InvalidArgument", id="argument"),
        pytest.param(StatusCode.OUT_OF_RANGE, "OutOfRange", id="range"),
        pytest.param(StatusCode.DATA_LOSS, "DataLoss", id="loss"),
    ],
)
def test_failed_calls_as_go_prints_them(code: StatusCode, expected: str) -> None:
    assert rpc_error(code.name, "boom") == f"rpc error: code = {expected} desc = boom"


def test_versions_of_a_watched_plugin() -> None:
    assert texts.no_common_version(["v1", "v2"]) == (
        "manager version, v1beta1, is not among plugin supported versions [v1 v2]"
    )
