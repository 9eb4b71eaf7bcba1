"""The node conditions over time: one evaluation after another (EVI-10 to EVI-13).

Pure: the state goes in with the time and what was observed, and a new state comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from numalign.admission.handlers.eviction_filesystems import with_container_fs
from numalign.admission.handlers.eviction_signals import CONDITION_OF, Observation
from numalign.admission.handlers.eviction_thresholds import Amount, Threshold
from numalign.admission.handlers.single_float import truncated
from numalign.model.quantity import Format, Quantity

DEFAULT_TRANSITION_PERIOD = 300.0
"""Seconds that a condition outlives its last observation (EVI-12)."""

EVALUATION_PERIOD = 10.0
"""Seconds between two evaluations (EVI-13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionState:
    """What one evaluation leaves for the next.

    `conditions` are sorted. `met` are the thresholds whose grace period is over; the first
    evaluation adds those of the container filesystem to `thresholds`.
    """

    thresholds: tuple[Threshold, ...]
    conditions: tuple[str, ...] = ()
    met: tuple[Threshold, ...] = ()
    first_observed: Mapping[Threshold, float] = field(default_factory=dict)
    condition_observed: Mapping[str, float] = field(default_factory=dict)
    has_evaluated: bool = False


def evaluate(
    state: EvictionState,
    observed: Mapping[str, Observation] | None,
    now: float,
    *,
    transition_period: float,
    dedicated_image_fs: bool,
    split_container_fs: bool,
    local_storage_isolation: bool = True,
) -> EvictionState:
    """The state after one evaluation at `now` (seconds); `observed` None: nothing can be read.

    Conditions come from thresholds met before their grace period is looked at, and from
    those met earlier that are still below their minimum reclaim (EVI-11).
    """
    if not state.thresholds and not local_storage_isolation:
        return state
    thresholds = state.thresholds
    if not state.has_evaluated:
        thresholds, in_force = with_container_fs(
            thresholds,
            dedicated_image_fs=dedicated_image_fs,
            split_container_fs=split_container_fs,
        )
        state = replace(state, thresholds=in_force, has_evaluated=True)
    if observed is None:
        return state
    met = list(thresholds_met(thresholds, observed))
    kept = {_identity(threshold) for threshold in met}
    met += [
        threshold
        for threshold in thresholds_met(state.met, observed, with_reclaim=True)
        if _identity(threshold) not in kept
    ]
    first_observed = {t: state.first_observed.get(t, now) for t in met}
    seen = {CONDITION_OF[threshold.signal] for threshold in met}
    condition_observed = dict(state.condition_observed) | dict.fromkeys(seen, now)
    return replace(
        state,
        conditions=tuple(
            sorted(c for c, at in condition_observed.items() if now - at < transition_period)
        ),
        met=tuple(t for t in met if now - first_observed[t] >= t.grace),
        first_observed=first_observed,
        condition_observed=condition_observed,
    )


def thresholds_met(
    thresholds: Iterable[Threshold],
    observed: Mapping[str, Observation],
    *,
    with_reclaim: bool = False,
) -> tuple[Threshold, ...]:
    """The thresholds that are strictly above what is available (EVI-10).

    `with_reclaim` adds the minimum reclaim to them first.
    """
    return tuple(t for t in thresholds if _is_met(t, observed.get(t.signal), with_reclaim))


def thresholds_updated(
    thresholds: Sequence[Threshold],
    observed: Mapping[str, Observation],
    last: Mapping[str, Observation],
) -> tuple[Threshold, ...]:
    """The thresholds whose numbers are newer than the last ones, or of unknown age."""
    updated = []
    for threshold in thresholds:
        now = observed.get(threshold.signal)
        if now is None:
            continue
        before = last.get(threshold.signal)
        if before is None or now.time is None or before.time is None or now.time > before.time:
            updated.append(threshold)
    return tuple(updated)


def _is_met(threshold: Threshold, observed: Observation | None, with_reclaim: bool) -> bool:
    if observed is None or not threshold.operator:
        return False
    bound = _quantity(threshold.value, observed.capacity)
    if with_reclaim and threshold.min_reclaim is not None:
        bound += _quantity(threshold.min_reclaim, observed.capacity)
    return bound > observed.available


def _quantity(amount: Amount, capacity: Quantity) -> Quantity:
    if amount.quantity is not None:
        return amount.quantity
    share = amount.percentage or 0.0
    return Quantity.from_int(truncated(float(capacity.value()) * share), Format.BINARY_SI)


def _identity(threshold: Threshold) -> tuple[str, str, float, Amount]:
    return (threshold.signal, threshold.operator, threshold.grace, threshold.value)
