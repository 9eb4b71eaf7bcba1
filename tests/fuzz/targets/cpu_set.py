"""Lists of CPUs."""

from __future__ import annotations

from tests.fuzz.recorded import unit_inputs
from tests.fuzz.target import Target

from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError


def run(data: bytes) -> None:
    """Read a list; its canonical text must stand for the same set."""
    cpus = CpuSet.parse(data.decode("utf-8", "surrogateescape"))
    assert CpuSet.parse(str(cpus)) == cpus


TARGET = Target(
    name="cpu_set",
    run=run,
    documented=(CpuSetSyntaxError,),
    seeds=tuple(
        given["text"].encode("utf-8", "surrogatepass")
        for given in unit_inputs("cpuset")
        if "text" in given
    ),
)
