"""The bytes of a v1.Pod, as callers send them."""

from __future__ import annotations

import json

from tests.fuzz.recorded import pods
from tests.fuzz.target import Target

from numalign.errors import InvalidInput
from numalign.kube.pod_decode import decode_pod
from numalign.kube.pod_json import pod_from_json

TARGET = Target(
    name="pod_message",
    run=decode_pod,
    documented=(InvalidInput,),
    seeds=tuple(pod_from_json(json.loads(text)).SerializeToString() for text in pods(60)),
)
