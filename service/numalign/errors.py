"""The exception tree. Each leaf maps to one gRPC code, in `numalign.rpc.status`.

A decision ("rejected") is never an exception: these say that no decision was made and that
nothing was kept.

    NumalignError
     ├── InvalidInput          a field of the request is wrong       INVALID_ARGUMENT
     ├── SpecChanged           the pod is admitted with another spec FAILED_PRECONDITION
     ├── NodeUnknown           the caller has to set the Node object FAILED_PRECONDITION
     ├── NotPrepared           a container must not start yet        FAILED_PRECONDITION
     ├── NotKept               the node keeps no such thing           FAILED_PRECONDITION
     ├── NotUnprepared         claims of a pod are not given back    UNAVAILABLE
     ├── NotFound              an unknown pod or container           NOT_FOUND
     ├── AlreadyExists         a name or resource is taken           ALREADY_EXISTS
     ├── Unavailable           a provider is down or restarted       UNAVAILABLE
     ├── QueueFull             too many admissions are waiting       RESOURCE_EXHAUSTED
     ├── Undecided             a merge is too hard to finish         RESOURCE_EXHAUSTED
     ├── RevisionTooOld        a watch starts before the history     OUT_OF_RANGE
     ├── Fault                 the pod cannot be judged              (a rejection with our text)
     ├── Deferred              the pod cannot be judged yet          (the verdict DEFERRED)
     ├── StateError            the state file cannot be used         (the service does not start)
     │    ├── DamagedState     it is damaged or foreign              (set aside, or as above)
     │    └── StateNotWritten  it cannot be written just now         UNAVAILABLE
     ├── ConfigError           the configuration is wrong            (the service does not start)
     └── StartError            a start check refuses                 (the service does not start)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One thing wrong with a request: a path such as `spec.containers[0].name`, and why."""

    field: str
    description: str


class NumalignError(Exception):
    """Base of everything numalign raises on purpose."""


class InvalidInput(NumalignError):
    """The request cannot be understood; `violations` name every field found wrong."""

    def __init__(self, *violations: FieldViolation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" for v in violations))
        self.violations = violations


class SpecChanged(NumalignError):
    """The pod is admitted, and the spec now sent differs in `field`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NodeUnknown(NumalignError):
    """The caller wants its pods judged by a Node object, and none is known."""


class NotPrepared(NumalignError):
    """A container of an admitted pod cannot be made ready to start; the text says why."""


class NotKept(NumalignError):
    """The configuration has the node keep nothing of what is asked for; the text says which."""


class NotUnprepared(NumalignError):
    """Resource claims of a pod that has ended are not given back yet; the text says why."""


class NotFound(NumalignError):
    """The request names a pod, container or provider that is not known."""


class AlreadyExists(NumalignError):
    """The name or resource belongs to somebody else already."""


class Unavailable(NumalignError):
    """A service that the decision needs did not answer, or restarted in between."""


class QueueFull(NumalignError):
    """More admissions are waiting than the configured bound."""


class Undecided(NumalignError):
    """Whether the pod can be aligned was not settled within the work that a decision may take."""


class RevisionTooOld(NumalignError):
    """The history that a watch asks for is no longer kept."""


class Fault(NumalignError):
    """The kubelet would crash over this pod; here it is refused and nothing is kept.

    Base of the typed faults of the deciding parts. The pod is answered with reason
    `UnexpectedAdmissionError` and this text.
    """


class Deferred(NumalignError):
    """Nothing is wrong with the pod, but it is too early to judge it; nothing is kept.

    `reason` is a word to match on; the message says what is waited for. The caller may ask
    again after `retry_after` seconds.
    """

    def __init__(self, reason: str, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class StateError(NumalignError):
    """A state file is damaged, foreign, or held by another process."""


class DamagedState(StateError):
    """A state file is no state file of ours, or not any more; `path` is where it is."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class StateNotWritten(StateError):
    """The state file cannot be written now, as on a full disk; `path` is where it is."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class ConfigError(NumalignError):
    """A setting is wrong; the message names the setting and the value."""


class StartError(NumalignError):
    """The service refuses to start; `stage` names the part that refused.

    `setting` is the path of the setting that it refuses, empty where no single one is at fault.
    The message is the kubelet's own where it has one, and so names neither.
    """

    def __init__(self, stage: str, message: str, *, setting: str = "") -> None:
        super().__init__(message)
        self.stage = stage
        self.setting = setting

    def line(self) -> str:
        """What a person reads: `<setting>: <stage>: <message>`."""
        parts = (self.setting, self.stage, str(self))
        return ": ".join(part for part in parts if part)
