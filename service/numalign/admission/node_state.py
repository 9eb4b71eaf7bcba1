"""What the Admission service knows of its node: the Node object, pressure, shutdown.

Nothing of it outlives the process: whoever told it tells it again, and pressure is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from numalign.admission.chain.question import NodeFacts
from numalign.admission.handlers.eviction_signals import NodeStats, observations
from numalign.admission.handlers.eviction_state import (
    EVALUATION_PERIOD,
    EvictionState,
    evaluate,
)
from numalign.admission.handlers.eviction_thresholds import Threshold
from numalign.admission.node_file import KnownNode, NodeFile
from numalign.telemetry.logs import get_logger

_log = get_logger("node-state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """How the node's pressure is measured, as one configuration says.

    `transition_period` is in seconds. `read_stats` may block. `dedicated_image_fs`: images have
    a filesystem of their own.
    """

    thresholds: tuple[Threshold, ...]
    transition_period: float
    read_stats: Callable[[], NodeStats]
    dedicated_image_fs: bool


class NodeState:
    """The node from `start` to `close`, as handlers are shown it.

    `clock` counts seconds. The Node object comes from `file`, until a call sets it.
    """

    def __init__(
        self,
        pressure: Pressure,
        clock: Callable[[], float],
        file: NodeFile | None = None,
    ) -> None:
        self._pressure = pressure
        self._eviction = EvictionState(thresholds=pressure.thresholds)
        self._clock = clock
        self._file = file
        self._node = None if file is None else file.node
        self._facts = NodeFacts(node=None)
        self._shutting_down: frozenset[str] = frozenset()
        self._measuring: asyncio.Task[None] | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a Node object to judge by."""
        return self._node is not None

    @property
    def node_bytes(self) -> bytes:
        """The Node object, serialised, for handlers of others; empty where none is known."""
        return b"" if self._node is None else self._node.data

    def facts(self) -> NodeFacts:
        """The node at this moment."""
        if self._file is not None:
            self._node = self._file.latest()
        facts = replace(self._facts, node=None if self._node is None else self._node.view)
        return facts if self._file is None else replace(facts, fresh_node=self._file.read_view)

    def set_node(self, node: KnownNode) -> None:
        """The Node object says this now; a file is not looked at any more."""
        self._node, self._file = node, None

    def change(self, pressure: Pressure) -> None:
        """Measure pressure otherwise; conditions last as long as they were to (EVI-12)."""
        self._pressure = pressure
        self._eviction = EvictionState(
            thresholds=pressure.thresholds,
            conditions=self._eviction.conditions,
            condition_observed=self._eviction.condition_observed,
        )

    def change_file(self, file: NodeFile | None) -> None:
        """The Node object comes from another file now; None: what is known stays."""
        self._file = file
        if file is not None:
            self._node = file.node

    def set_shutting_down(self, shutting_down: bool, source: str = "call") -> None:
        """The shutdown notification (SHUT-3); it holds while any of its sources says so."""
        self._shutting_down = self._shutting_down - {source}
        if shutting_down:
            self._shutting_down |= {source}
        if bool(self._shutting_down) is not self._facts.shutting_down:
            _log.info("node shutdown", shutting_down=shutting_down, source=source)
        self._facts = replace(self._facts, shutting_down=bool(self._shutting_down))

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
            transition_period=self._pressure.transition_period,
            dedicated_image_fs=self._pressure.dedicated_image_fs,
            split_container_fs=False,
        )
        conditions = self._eviction.conditions
        if conditions != before:
            _log.info("node conditions", conditions=list(conditions))
            self._facts = replace(self._facts, conditions=conditions)

    async def _measure(self) -> None:
        while True:
            try:
                self.measured(await asyncio.to_thread(self._pressure.read_stats))
            except OSError as error:
                _log.error("node cannot be measured; conditions stay as they are", why=str(error))
            await asyncio.sleep(EVALUATION_PERIOD)
