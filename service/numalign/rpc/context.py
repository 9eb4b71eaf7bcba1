"""The context that every servicer method gets, whatever carries the call."""

from __future__ import annotations

from typing import Any, TypeAlias

from grpc import aio

Context: TypeAlias = "aio.ServicerContext[Any, Any]"
"""A servicer's context: deadline, metadata, abort. Local and remote calls look the same."""
