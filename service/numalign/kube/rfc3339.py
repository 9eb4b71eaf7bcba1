"""Moments as text, as Kubernetes' JSON writes them.

Separate because it is arithmetic on the calendar and nothing else.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from numalign.kube.core.v1 import core_pb2

_FORM = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?"
    r"(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))\Z",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _SECOND
_LAST = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH) // _SECOND


def parse_time(text: str) -> core_pb2.Time:
    """The moment that an RFC 3339 text names; ValueError if it is none."""
    match = _FORM.match(text)
    if match is None:
        raise ValueError("must be a time such as 2006-01-02T15:04:05Z")
    moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    seconds = (moment - _EPOCH) // _SECOND
    if match[3]:
        offset = int(match[4]) * 3600 + int(match[5]) * 60
        seconds += -offset if match[3] == "+" else offset
    if not _FIRST <= seconds <= _LAST:
        raise ValueError("must be within the years 1 to 9999 in UTC")
    return core_pb2.Time(seconds=seconds, nanos=int((match[2] or "").ljust(9, "0")))


def format_time(time: core_pb2.Time) -> str:
    """The moment in UTC; a fraction is written only if there is one.

    Raises ValueError for a moment outside the years 1 to 9999.
    """
    if not _FIRST <= time.seconds <= _LAST:
        raise ValueError(f"{time.seconds} seconds is no moment of the calendar")
    moment = _EPOCH + timedelta(seconds=time.seconds)
    fraction = f".{time.nanos:09d}".rstrip("0") if time.nanos else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"
