"""How long an event of the runtime may wait for what.

The runtime asks one plugin about one event at a time, and goes on without a plugin that takes
too long. So the time is divided, and a service that has just hung gets less until it answers.
"""

from __future__ import annotations

from dataclasses import dataclass

RUNTIME_SECONDS = 2.0
"""What a runtime gives that does not say."""

SPEC_SHARE = 0.2
ADMISSION_SHARE = 0.6
IMPATIENT_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for one event: to find the pod's spec, and for everything asked of Admission."""

    spec: float
    admission: float


def patience(request_seconds: float, *, admission_hung: bool) -> Patience:
    """Divide the seconds that the runtime gives for a request; 0 if it does not say.

    Of the usual 2 s Admission gets 1.2 s, and 0.2 s after it has been too slow.
    """
    seconds = request_seconds or RUNTIME_SECONDS
    share = IMPATIENT_SHARE if admission_hung else ADMISSION_SHARE
    return Patience(spec=seconds * SPEC_SHARE, admission=seconds * share)
