"""An admit handler that allows each namespace only so many pods on a node.

A pod beyond them is rejected, unless its label `pod-quota/wait` is `yes`: then it is deferred
until another one has ended. Run it beside numalign, and list its socket in the configuration:

    python handler.py /run/pod-quota/admit.sock 5

    numalign:
      admission:
        handlers:
        - {name: pod-quota, endpoint: /run/pod-quota/admit.sock, before: topology-manager}
"""

from __future__ import annotations

import sys

from numalign_client.sdk import (
    AdmitAttributes,
    AdmitHandlerServer,
    Defer,
    Judgement,
    Reject,
    SimpleAdmitHandler,
)

WAITS = "pod-quota/wait"


class PodQuota(SimpleAdmitHandler):
    """At most `limit` pods of a namespace."""

    name = "pod-quota"

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def judge(self, attributes: AdmitAttributes) -> Judgement:
        """Count the namespace's other pods."""
        if attributes.is_resize:
            return None
        pod = attributes.pod.metadata
        others = sum(other.namespace == pod.namespace for other in attributes.other_pods)
        if others < self._limit:
            return None
        message = f'namespace "{pod.namespace}" has {others} pods here, and {self._limit} at most'
        if pod.labels.get(WAITS) == "yes":
            return Defer("PodQuotaFull", message, retry_after=5)
        return Reject("PodQuotaExceeded", message)


if __name__ == "__main__":
    socket, limit = sys.argv[1:]
    AdmitHandlerServer(PodQuota(int(limit)), socket).run()
