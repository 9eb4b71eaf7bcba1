"""What the Admission service knows of its node: the Node object, pressure, shutdown.

Nothing of it outlives the process: whoever told it tells it again, and pressure is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from numalign.admission.chain.question import NodeFacts
from numalign.admission.handlers.eviction_signals import NodeStats, observations
from numalign.admission.handlers.eviction_state import (
    EVALUATION_PERIOD,
    EvictionState,
    evaluate,
)
from numalign.admission.handlers.eviction_thresholds import Threshold
from numalign.admission.handlers.node_view import NodeView
from numalign.telemetry.logs import get_logger

_log = get_logger("node-state")


class NodeState:
    """The node from `start` to `close`, as handlers are shown it.

    `node_bytes` is the Node object, serialised, for handlers of others. `read_stats` may block;
    `clock` counts seconds. `dedicated_image_fs`: images have a filesystem of their own.
    """

    def __init__(
        self,
        thresholds: tuple[Threshold, ...],
        transition_period: float,
        read_stats: Callable[[], NodeStats],
        clock: Callable[[], float],
        *,
        dedicated_image_fs: bool,
    ) -> None:
        self._eviction = EvictionState(thresholds=thresholds)
        self._transition_period = transition_period
        self._read_stats = read_stats
        self._clock = clock
        self._dedicated_image_fs = dedicated_image_fs
        self._facts = NodeFacts(node=None)
        self.node_bytes = b""
        self._measuring: asyncio.Task[None] | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a Node object to judge by."""
        return self._facts.node is not None

    def facts(self) -> NodeFacts:
        """The node at this moment."""
        return self._facts

    def set_node(self, node: NodeView, data: bytes) -> None:
        """The Node object says this now; `data` is all of it."""
        self.node_bytes = data
        self._facts = replace(self._facts, node=node)

    def set_shutting_down(self, shutting_down: bool) -> None:
        """The shutdown notification (SHUT-3)."""
        if shutting_down is not self._facts.shutting_down:
            _log.info("node shutdown", shutting_down=shutting_down)
        self._facts = replace(self._facts, shutting_down=shutting_down)

    def start(self) -> None:
        """Begin to measure pressure; there is none before the first measurement (EVI-13)."""
        if self._measuring is None:
            self._measuring = asyncio.get_running_loop().create_task(self._measure())

    async def close(self) -> None:
        """Measure no more."""
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.gather(self._measuring, return_exceptions=True)
            self._measuring = None

    def measured(self, stats: NodeStats) -> None:
        """Evaluate what was measured now."""
        before = self._eviction.conditions
        self._eviction = evaluate(
            self._eviction,
            observations(stats),
            self._clock(),
            transition_period=self._transition_period,
            dedicated_image_fs=self._dedicated_image_fs,
            split_container_fs=False,
        )
        conditions = self._eviction.conditions
        if conditions != before:
            _log.info("node conditions", conditions=list(conditions))
            self._facts = replace(self._facts, conditions=conditions)

    async def _measure(self) -> None:
        while True:
            self.measured(await asyncio.to_thread(self._read_stats))
            await asyncio.sleep(EVALUATION_PERIOD)
