"""Moments as a user types them: so long ago, or a date and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from numalign.document.duration import DurationSyntaxError, parse_duration


class Moment(click.ParamType):  # type: ignore[type-arg] # older click has no arguments here
    """`10m` for ten minutes ago, or `2026-01-31T08:00:00Z`; without a zone it is local time."""

    name = "moment"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The moment; fails as wrong usage."""
        if isinstance(value, datetime):
            return value
        moment = moment_of(str(value), datetime.now(UTC))
        if moment is None:
            self.fail(
                f'"{value}" is neither a duration such as 10m nor a time such as '
                "2026-01-31T08:00:00Z",
                param,
                ctx,
            )
        return moment


def moment_of(text: str, now: datetime) -> datetime | None:
    """The moment that `text` names at `now`; None where it names none."""
    try:
        return now - timedelta(seconds=parse_duration(text))
    except DurationSyntaxError:
        pass
    except OverflowError:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone() if moment.tzinfo is None else moment
