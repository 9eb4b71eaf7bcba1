"""Whatever a manifest holds, it gives a pod or a ManifestError, and the same one again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.agent.manifests.texts import ORIGIN, manifest

from numalign_agent.manifests.errors import ManifestError
from numalign_agent.manifests.manifest import read_pod
from numalign_agent.manifests.schema import FieldType, Scalar, fields_of

_LIKELY: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.TEXT: st.sampled_from(["", "c", "Always", "x/y", "Ä"]),
    Scalar.BOOLEAN: st.booleans(),
    Scalar.INT32: st.integers(-1, 70000),
    Scalar.INT64: st.integers(-1, 2**63 - 1),
    Scalar.QUANTITY: st.sampled_from(["1", "1500m", 0, 1.5, "-3", "2Gi", "1e3"]),
    Scalar.TIME: st.just("2026-01-02T03:04:05Z"),
    Scalar.INT_OR_TEXT: st.sampled_from([80, "http"]),
}
_UNLIKELY = st.sampled_from([None, 0, "", [], {}, [None], {"a": None}, 1.5, True])


def _values(field: FieldType, depth: int) -> st.SearchStrategy[Any]:
    one = _LIKELY[field.scalar] if field.scalar else _objects(field.object_type, depth - 1)
    if field.is_list:
        one = st.lists(one, max_size=2)
    elif field.is_map:
        one = st.dictionaries(st.sampled_from(["cpu", "a", "example.com/x"]), one, max_size=2)
    return one | _UNLIKELY


@st.composite
def _objects(draw: st.DrawFn, object_type: str, depth: int) -> dict[str, Any]:
    if depth == 0:
        return {}
    fields = fields_of(object_type)
    names = draw(st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True))
    return {name: draw(_values(fields[name], depth)) for name in names}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_objects("PodSpec", 5), _objects("Container", 4), _objects("ObjectMeta", 2))
def test_a_pod_or_an_error(spec: Any, container: Any, metadata: Any) -> None:
    document = manifest(metadata={**metadata, "name": "web"})
    document["spec"] = {"containers": [{"name": "c", "image": "i", **container}], **spec}
    data = json.dumps(document).encode()

    try:
        pod = read_pod(data, ORIGIN)
    except ManifestError:
        return

    again = read_pod(data, ORIGIN)
    assert again == pod
    json.dumps(dict(pod.document))
