"""Each service's name in gRPC health.

Written out, since their own code is slow to import, and whoever asks how they are needs none of it.
"""

from __future__ import annotations

from numalign.config.settings import Service

_PROVIDER = "numalign.v1.HintProvider"

HEALTH_NAMES = {
    Service.ADMISSION: "numalign.v1.Admission",
    Service.TOPOLOGY: "numalign.v1.TopologyManager",
    Service.CPU: _PROVIDER,
    Service.MEMORY: _PROVIDER,
    Service.DEVICE: _PROVIDER,
    Service.DRA: "numalign.v1.DynamicResources",
}
