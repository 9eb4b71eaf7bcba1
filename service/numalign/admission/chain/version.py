"""The kubelets whose chain is known. Separate because the configuration names one, too."""

from __future__ import annotations

from enum import StrEnum


class ChainVersion(StrEnum):
    """The kubelet whose chain of admit handlers is walked (ADM-1, ADM-2)."""

    V1_36 = "v1.36"
    V1_31 = "v1.31"
