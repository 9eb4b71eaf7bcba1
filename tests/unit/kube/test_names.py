"""Names of pods and containers, worded as the API server does, and uids."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.errors import FieldViolation, InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.names import MAX_UID, check_uid
from numalign.kube.pod_decode import decode_pod


def a_pod(
    uid: str = "u", name: str = "web", namespace: str = "default", container: str = "app"
) -> core_pb2.Pod:
    return core_pb2.Pod(
        metadata=core_pb2.ObjectMeta(uid=uid, name=name, namespace=namespace),
        spec=core_pb2.PodSpec(containers=[core_pb2.Container(name=container)]),
    )


def violations_of(message: core_pb2.Pod) -> tuple[FieldViolation, ...]:
    with pytest.raises(InvalidInput) as refused:
        decode_pod(message.SerializeToString())
    return refused.value.violations


@pytest.mark.parametrize("uid", ["u", "6f1c2f0e-3c53-4a38-9a0b-1f1f4b0d7c11", "a_b.c:d", "x" * 253])
def test_uids_that_there_are(uid: str) -> None:
    assert decode_pod(a_pod(uid).SerializeToString()).uid == uid


@pytest.mark.parametrize(
    "bad", [" ", "a b", "a\0b", "../x", "a/b", "..", "a\n", "-", "é", "x" * 254]
)
def test_uids_that_are_refused(bad: str) -> None:
    (violation,) = violations_of(a_pod(uid=bad))

    assert violation.field == "metadata.uid"
    assert violation.description.startswith(("Invalid value: ", "Too long: "))
    assert "\0" not in violation.description
    assert "\n" not in violation.description


@pytest.mark.parametrize(
    ("field", "path", "bad", "text"),
    [
        pytest.param("name", "metadata.name", "My Pod", "RFC 1123 subdomain", id="name"),
        pytest.param("name", "metadata.name", "a/b", "RFC 1123 subdomain", id="slash in the name"),
        pytest.param("name", "metadata.name", "a" * 254, "no more than 253", id="long name"),
        pytest.param("namespace", "metadata.namespace", "a.b", "RFC 1123 label", id="namespace"),
        pytest.param("container", "spec.containers[0].name", "a\0", "RFC 1123 label", id="NUL"),
        pytest.param("container", "spec.containers[0].name", "a" * 64, "more than 63", id="long"),
    ],
)
def test_names_that_are_refused(field: str, path: str, bad: str, text: str) -> None:
    (violation,) = violations_of(a_pod(**{field: bad}))

    assert violation.field == path
    assert text in violation.description


def test_everything_wrong_is_named_at_once_and_shortened() -> None:
    found = violations_of(a_pod("a b", "A" * 100_000, "B" * 100_000, "C" * 100_000))

    assert {v.field for v in found} == {
        "metadata.uid",
        "metadata.name",
        "metadata.namespace",
        "spec.containers[0].name",
    }
    assert all(len(v.description) < 1500 for v in found)
    assert any("(100000 characters)" in v.description for v in found)


@given(st.text(max_size=300))
def test_a_uid_that_is_accepted_is_a_file_name(text: str) -> None:
    if list(check_uid("metadata.uid", text)):
        return
    path = PurePosixPath("/state") / text
    assert path.parent == PurePosixPath("/state")
    assert path.name == text
    assert "\0" not in text
    assert 0 < len(text.encode()) <= MAX_UID
