"""What plugins call themselves to a plugin watcher."""

from __future__ import annotations

DRA_PLUGIN_TYPE = "DRAPlugin"
"""A DRA driver (DRA-3)."""

HINT_PROVIDER_TYPE = "numalign.v1.HintProvider"
"""A hint provider, which no kubelet knows."""
