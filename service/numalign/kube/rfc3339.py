"""Moments as text, as Kubernetes' JSON writes them.

Separate because it is arithmetic on the calendar and nothing else.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from numalign.kube.core.v1 import core_pb2

_FORM = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(?:Z|([+-])(\d\d):(\d\d))\Z", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


def parse_time(text: str) -> core_pb2.Time:
    """The moment that an RFC 3339 text names; ValueError if it is none."""
    match = _FORM.match(text)
    if match is None:
        raise ValueError("must be a time such as 2006-01-02T15:04:05Z")
    moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    if match[3]:
        offset = timedelta(hours=int(match[4]), minutes=int(match[5]))
        moment = moment - offset if match[3] == "+" else moment + offset
    nanos = int((match[2] or "").ljust(9, "0"))
    return core_pb2.Time(seconds=(moment - _EPOCH) // _SECOND, nanos=nanos)


def format_time(time: core_pb2.Time) -> str:
    """The moment in UTC; a fraction is written only if there is one.

    Raises ValueError for a moment outside the years 1 to 9999.
    """
    try:
        moment = _EPOCH + timedelta(seconds=time.seconds)
    except OverflowError as error:
        raise ValueError(f"{time.seconds} seconds is no moment of the calendar") from error
    fraction = f".{time.nanos:09d}".rstrip("0") if time.nanos else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"
