"""Client of the numalign node services: admit pods, follow assignments, write hint providers.

`AdmissionClient` and `AsyncAdmissionClient` are what a node agent uses; `numalign_client.sdk`
is what a hint provider of one's own is built from.
"""

from numalign_client.asynchronous import AsyncAdmissionClient
from numalign_client.blocking import AdmissionClient
from numalign_client.errors import (
    AdmissionError,
    AlreadyRegistered,
    CallCancelled,
    DeadlineExceeded,
    HistoryGone,
    InvalidRequest,
    NotAdmitted,
    PreconditionFailed,
    QueueFull,
    ServiceUnavailable,
    UnsupportedRequest,
    Violation,
)
from numalign_client.target import DEFAULT_SOCKET
from numalign_client.wire import Explain, Pod

__all__ = [
    "DEFAULT_SOCKET",
    "AdmissionClient",
    "AdmissionError",
    "AlreadyRegistered",
    "AsyncAdmissionClient",
    "CallCancelled",
    "DeadlineExceeded",
    "Explain",
    "HistoryGone",
    "InvalidRequest",
    "NotAdmitted",
    "Pod",
    "PreconditionFailed",
    "QueueFull",
    "ServiceUnavailable",
    "UnsupportedRequest",
    "Violation",
]
