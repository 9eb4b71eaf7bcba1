"""Client of the numalign node services: admit pods, follow assignments, write parts of one's own.

`Client` and `AsyncClient` are what most programs use. `AdmissionClient` and
`AsyncAdmissionClient` below them make each call once and give the messages of the contract.
`numalign_client.sdk` is what hint providers and admit handlers are built from.

Names are loaded when they are first used: a program pays for what it takes.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numalign_client.async_client import AsyncClient
    from numalign_client.asynchronous import AsyncAdmissionClient
    from numalign_client.blocking import AdmissionClient
    from numalign_client.client import Client
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
    from numalign_client.journal import History, PastDecision
    from numalign_client.objects import NodeLike, PodLike
    from numalign_client.pacing import Retry
    from numalign_client.resource_status import allocated_resources_status
    from numalign_client.results import (
        Admissions,
        AdmittedPod,
        Affinity,
        Amounts,
        AssignmentEvent,
        Changed,
        ContainerAllocation,
        ContainerEdits,
        Decision,
        DeviceAllocation,
        DeviceNode,
        Existing,
        MemoryBlock,
        Mount,
        PodAllocation,
        PodResources,
        Preparation,
        Reconciliation,
        Released,
        SharedCpus,
        Synced,
        UnhealthyDevice,
        UnhealthyDevices,
        Verdict,
        Victim,
    )
    from numalign_client.simulation import Simulation
    from numalign_client.target import DEFAULT_SOCKET
    from numalign_client.wire import Explain, Pod

__all__ = [
    "DEFAULT_SOCKET",
    "AdmissionClient",
    "AdmissionError",
    "Admissions",
    "AdmittedPod",
    "Affinity",
    "AlreadyRegistered",
    "Amounts",
    "AssignmentEvent",
    "AsyncAdmissionClient",
    "AsyncClient",
    "CallCancelled",
    "Changed",
    "Client",
    "ContainerAllocation",
    "ContainerEdits",
    "DeadlineExceeded",
    "Decision",
    "DeviceAllocation",
    "DeviceNode",
    "Existing",
    "Explain",
    "History",
    "HistoryGone",
    "InvalidRequest",
    "MemoryBlock",
    "Mount",
    "NodeLike",
    "NotAdmitted",
    "PastDecision",
    "Pod",
    "PodAllocation",
    "PodLike",
    "PodResources",
    "PreconditionFailed",
    "Preparation",
    "QueueFull",
    "Reconciliation",
    "Released",
    "Retry",
    "ServiceUnavailable",
    "SharedCpus",
    "Simulation",
    "Synced",
    "UnhealthyDevice",
    "UnhealthyDevices",
    "UnsupportedRequest",
    "Verdict",
    "Victim",
    "Violation",
    "allocated_resources_status",
]


_MODULES = {
    "async_client": ("AsyncClient",),
    "asynchronous": ("AsyncAdmissionClient",),
    "blocking": ("AdmissionClient",),
    "client": ("Client",),
    "errors": (
        "AdmissionError", "AlreadyRegistered", "CallCancelled", "DeadlineExceeded", "HistoryGone",
        "InvalidRequest", "NotAdmitted", "PreconditionFailed", "QueueFull", "ServiceUnavailable",
        "UnsupportedRequest", "Violation",
    ),
    "journal": ("History", "PastDecision"),
    "objects": ("NodeLike", "PodLike"),
    "pacing": ("Retry",),
    "resource_status": ("allocated_resources_status",),
    "results": (
        "Admissions", "AdmittedPod", "Affinity", "Amounts", "AssignmentEvent", "Changed",
        "ContainerAllocation", "ContainerEdits", "Decision", "DeviceAllocation", "DeviceNode",
        "Existing", "MemoryBlock", "Mount", "PodAllocation", "PodResources", "Preparation",
        "Reconciliation", "Released", "SharedCpus", "Synced", "UnhealthyDevice",
        "UnhealthyDevices", "Verdict", "Victim",
    ),
    "simulation": ("Simulation",),
    "target": ("DEFAULT_SOCKET",),
    "wire": ("Explain", "Pod"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
