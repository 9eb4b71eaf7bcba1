"""What a call of a provider is about, on its log lines and on its span.

Separate from the servicer, which translates between messages and books.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId
from numalign.model.pod import Container, Pod
from numalign.telemetry import attributes
from numalign.telemetry.logs import log_fields
from numalign.telemetry.tracing import active_tracer


def about(
    provider: str,
    admission_id: AdmissionId | None,
    pod: Pod,
    container: Container | None,
    affinity: TopologyHint | None = None,
) -> AbstractContextManager[None]:
    """Names provider, admission, pod, container and affinity while it is entered.

    None: the call is about no admission, about the pod as a whole, or says no affinity.
    """
    fields = {
        "provider": provider,
        "pod": f"{pod.namespace}/{pod.name}",
        "pod_uid": pod.uid,
    }
    if container is not None:
        fields["container"] = container.name
    if admission_id is not None:
        fields["admission_id"] = admission_id
    tracer = active_tracer()
    if tracer is not None:
        tracer.annotate(attributes.pod_attributes(pod.uid, pod.namespace, pod.name))
        tracer.annotate(
            {attributes.PROVIDER: provider, attributes.ADMISSION_ID: admission_id or ""}
        )
        if container is not None:
            tracer.annotate({attributes.CONTAINER: container.name})
        if affinity is not None:
            tracer.annotate(attributes.affinity_attributes(affinity))
    return log_fields(**fields)
