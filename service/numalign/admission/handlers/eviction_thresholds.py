"""Eviction thresholds: from the options to values (EVI-9).

Separate from what is done with them while the node runs: this happens once, and whatever is
wrong with an option stops the start (DES-7).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from numalign.admission.handlers.eviction_signals import (
    ALLOCATABLE_MEMORY,
    CONDITION_OF,
    MEMORY,
)
from numalign.admission.handlers.single_float import parse_single, to_single
from numalign.document.duration import DurationSyntaxError, parse_duration
from numalign.errors import ConfigError
from numalign.model.quantity import Quantity, QuantitySyntaxError

LINUX_DEFAULTS: Mapping[str, str] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
"""`evictionHard` where it is not set."""

LESS_THAN = "LessThan"

_DISABLED = ("0%", "100%")
_PODS = "pods"


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity, or a share of the capacity (0..1 for a threshold); one of them is None."""

    quantity: Quantity | None = None
    percentage: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A signal, how low it may go, and for how many seconds.

    An empty `operator` marks a threshold that is never met. `min_reclaim` is how far above
    the value a signal must rise again; None is not at all.
    """

    signal: str
    value: Amount = field(default_factory=Amount)
    operator: str = LESS_THAN
    grace: float = 0.0
    min_reclaim: Amount | None = None

    @property
    def is_hard(self) -> bool:
        """Whether it acts at once; a soft one without grace does, too."""
        return self.grace == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOptions:
    """The options as written; None or nothing where they are not."""

    hard: Mapping[str, str] | None = None
    soft: Mapping[str, str] | None = None
    soft_grace_period: Mapping[str, str] | None = None
    minimum_reclaim: Mapping[str, str] | None = None
    enforce_node_allocatable: Collection[str] = ()


def parse_thresholds(options: EvictionOptions) -> tuple[Threshold, ...]:
    """The thresholds that the options ask for; ConfigError with the kubelet's text if wrong."""
    hard = _statements(options.hard)
    soft = _statements(options.soft)
    graces = _grace_periods(options.soft_grace_period)
    reclaims = _minimum_reclaims(options.minimum_reclaim)
    for threshold in soft:
        if threshold.signal not in graces:
            raise ConfigError(
                f"grace period must be specified for the soft eviction threshold {threshold.signal}"
            )
    soft = [replace(threshold, grace=graces[threshold.signal]) for threshold in soft]
    thresholds = [
        replace(threshold, min_reclaim=reclaims.get(threshold.signal))
        for threshold in (*hard, *soft)
    ]
    if _PODS in options.enforce_node_allocatable:
        thresholds += [
            replace(threshold, signal=ALLOCATABLE_MEMORY)
            for threshold in thresholds
            if threshold.signal == MEMORY and threshold.is_hard
        ]
    return tuple(thresholds)


def _statements(option: Mapping[str, str] | None) -> list[Threshold]:
    thresholds = []
    for signal, text in (option or {}).items():
        _check_signal(signal)
        if text not in _DISABLED:
            thresholds.append(Threshold(signal=signal, value=_value(signal, text)))
    return thresholds


def _value(signal: str, text: str) -> Amount:
    if not text.endswith("%"):
        quantity = _quantity(text)
        if quantity.sign() <= 0:
            raise ConfigError(f"eviction threshold {signal} must be positive: {quantity}")
        return Amount(quantity=quantity)
    share = _share(text)
    if share < 0:
        raise ConfigError(f"eviction percentage threshold {signal} must be >= 0%: {text}")
    if share > 1:
        raise ConfigError(f"eviction percentage threshold {signal} must be <= 100%: {text}")
    return Amount(percentage=share)


def _grace_periods(option: Mapping[str, str] | None) -> dict[str, float]:
    periods = {}
    for signal, text in (option or {}).items():
        _check_signal(signal)
        try:
            period = parse_duration(text)
        except DurationSyntaxError as error:
            raise ConfigError(f"eviction grace period of {signal} {error}") from error
        if period < 0:
            raise ConfigError(
                f"invalid eviction grace period specified: {text}, must be a positive value"
            )
        periods[signal] = period
    return periods


def _minimum_reclaims(option: Mapping[str, str] | None) -> dict[str, Amount]:
    reclaims = {}
    for signal, text in (option or {}).items():
        _check_signal(signal)
        if text.endswith("%"):
            share = _share(text)
            if share <= 0:
                raise ConfigError(
                    f"eviction percentage minimum reclaim {signal} must be positive: {text}"
                )
            reclaims[signal] = Amount(percentage=share)
            continue
        quantity = _quantity(text)
        if quantity.sign() < 0:
            raise ConfigError(f"negative eviction minimum reclaim specified for {signal}")
        reclaims[signal] = Amount(quantity=quantity)
    return reclaims


def _check_signal(signal: str) -> None:
    if signal not in CONDITION_OF:
        raise ConfigError(f"unsupported eviction signal {signal}")


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantitySyntaxError as error:
        raise ConfigError(str(error)) from error


def _share(text: str) -> float:
    try:
        return to_single(parse_single(text.rstrip("%")) / 100)
    except ValueError as error:
        raise ConfigError(f"the percentage {text} cannot be read: {error}") from error
