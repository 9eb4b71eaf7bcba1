"""Decisions of the journal, as they are read. Pure: messages in, renderables out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numalign.cli.tables.decision import decision_parts, verdict_word
from numalign.cli.tables.explanation import with_names
from numalign.cli.tables.fitting import Fitting
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb

_LONGEST_WHY = 100


def decisions(records: Sequence[dc.DecisionRecord], names: Mapping[str, str]) -> RenderableType:
    """The decisions as a table, or one below the other where there is no room for that."""
    return Fitting(partial(decisions_table, records, names), partial(_one_by_one, records, names))


def _one_by_one(
    records: Iterable[dc.DecisionRecord], names: Mapping[str, str]
) -> Iterator[RenderableType]:
    for record in records:
        word, style = _what_was_said(record)
        yield Text.assemble(
            f" {record.number}  {time_text(record.last_time)}  ",
            (f"{record.namespace}/{record.name}", "bold"),
            "  ",
            (word, style),
            f"  {took_text(record.took)}" + (f", {record.times} times" * (record.times > 1)),
        )
        why = _reason_and_why(record)
        if why != "-":
            yield Padding(Text(with_names(why, names)), (0, 0, 0, 4), expand=False)


def decisions_table(
    decisions: Iterable[dc.DecisionRecord], names: Mapping[str, str] | None = None
) -> Table:
    """A row for each decision: the reason, and the first words of the explanation or message."""
    table = Table("no.", "time", "pod", "verdict", "times", "took", "why", box=None)
    for record in decisions:
        word, style = _what_was_said(record)
        table.add_row(
            str(record.number),
            time_text(record.last_time),
            f"{record.namespace}/{record.name}",
            Text(word, style=style),
            str(record.times),
            took_text(record.took),
            with_names(_reason_and_why(record), names or {}),
        )
    for column in table.columns:
        column.no_wrap = column.header in {"no.", "time", "verdict", "times", "took"}
        column.overflow = "fold"
    return table


def decision_record_parts(
    record: dc.DecisionRecord, names: Mapping[str, str]
) -> Iterator[RenderableType]:
    """Everything to print about one decision of the journal."""
    pod = f"{record.namespace}/{record.name}"
    yield from decision_parts(pod, answer_of(record), names)
    again = ""
    if record.times > 1:
        times = f"{record.times} times" if record.times > 2 else "twice"
        again = f", made {times} until {time_text(record.last_time)}"
    resize = "resize, " if record.operation == pb.OPERATION_RESIZE else ""
    line = (
        f"{resize}decision {record.number} of {time_text(record.first_time)}{again}; took "
        f"{took_text(record.took)}; owner {record.owner}; uid {record.pod_uid}"
    )
    yield Padding(Text(line, style="dim"), (0, 0, 0, 2), expand=False)


def answer_of(record: dc.DecisionRecord) -> ad.AdmitResponse:
    """The answer that the caller got, with the whole explanation."""
    answer = ad.AdmitResponse(
        verdict=record.verdict,
        handler=record.handler,
        reason=record.reason,
        message=record.message,
        handler_reason=record.handler_reason,
        allocations=record.allocations,
        victims=record.victims,
        warnings=record.warnings,
        revision=record.revision,
    )
    if record.HasField("retry_after"):
        answer.retry_after.CopyFrom(record.retry_after)
    if record.HasField("pod_allocation"):
        answer.pod_allocation.CopyFrom(record.pod_allocation)
    if record.HasField("explanation"):
        answer.explanation.CopyFrom(record.explanation)
    return answer


def _what_was_said(record: dc.DecisionRecord) -> tuple[str, str]:
    """The verdict in words, and its style."""
    word, style = verdict_word(record.verdict)
    return (f"resize {word}" if record.operation == pb.OPERATION_RESIZE else word), style


def _reason_and_why(record: dc.DecisionRecord) -> str:
    why = short_why(record)
    return f"{record.reason}: {why}" if record.reason else why


def short_why(record: dc.DecisionRecord) -> str:
    """What stood in the way, in a few words: the obstacle, else the message."""
    obstacles = record.explanation.obstacles
    text = obstacles[0].why if obstacles else record.message
    if not text:
        return "-"
    return text if len(text) <= _LONGEST_WHY else text[: _LONGEST_WHY - 1] + "…"


def time_text(time: Timestamp) -> str:
    """A moment in this machine's time zone, to the second."""
    moment = datetime.fromtimestamp(time.seconds, UTC).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def took_text(took: Duration) -> str:
    """A duration in milliseconds."""
    return f"{took.ToNanoseconds() / 1e6:.1f} ms"
