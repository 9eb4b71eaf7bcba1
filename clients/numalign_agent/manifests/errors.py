"""What is wrong with a manifest, worded as the kubelet words it."""

from __future__ import annotations

from collections.abc import Sequence

from numalign.errors import FieldViolation, NumalignError


class ManifestError(NumalignError):
    """A manifest gives no pod that may run here; the text says why."""


class NotAPod(ManifestError):
    """The text does not decode as a pod; `why` names every value that does not fit."""

    def __init__(self, location: str, why: str) -> None:
        super().__init__(f"{location}: couldn't parse as pod({why}), please check config file")
        self.why = why


class InvalidPod(ManifestError):
    """The pod decodes, and the API server would not take it; `violations` say why."""

    def __init__(self, violations: Sequence[FieldViolation]) -> None:
        shown = " ".join(f"{v.field}: {v.description}" for v in violations)
        super().__init__(f"invalid pod: [{shown}]")
        self.violations = tuple(violations)
