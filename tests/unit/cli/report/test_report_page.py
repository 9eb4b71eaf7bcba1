"""The page: every CPU and device is on it once, names are text, and it is well-formed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from tests.unit.cli.report.nodes import GPU, NASTY, machine, node

from numalign.cli.main import cli
from numalign.cli.report.fragmentation import Scattered, scattered
from numalign.cli.report.machine_svg import OWNER_COLOURS, WIDTH, machine_svg
from numalign.cli.report.markup import Markup, element
from numalign.cli.report.page import report_page
from numalign.cli.tables.ownership import Books
from numalign.machine.schema import machine_from_document
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1.node_resources_pb2 import NodeResources


def parsed(page: str) -> ET.Element:
    """The page as a tree: it is well-formed XML behind its first line."""
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def values(root: ET.Element, attribute: str) -> Counter[str]:
    return Counter(v for found in root.iter() if (v := found.get(attribute)) is not None)


@pytest.mark.parametrize(
    ("nodes", "cores"), [(1, 1), (2, 4), (3, 40), (64, 2)], ids=["tiny", "two", "wide", "many"]
)
def test_the_map_is_complete_and_within_its_frame(nodes: int, cores: int) -> None:
    described = machine_from_document(machine(nodes, cores))
    root = ET.fromstring(machine_svg(described, Books()).text)
    cpus = nodes * cores * 2
    assert values(root, "data-cpu") == Counter(map(str, range(cpus)))
    assert values(root, "data-numa-node") == Counter(map(str, range(nodes)))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert width == WIDTH
    for box in root:
        x, y = map(float, re.findall(r"[\d.]+", box.attrib["transform"]))
        assert x + float(box[0].attrib["width"]) <= width
        assert y + float(box[0].attrib["height"]) <= height


def test_who_has_what_is_said_in_words_marks_and_colours() -> None:
    root = parsed(report_page(node()))
    owned = [g for g in root.iter() if g.get("data-cpu") in {"2", "3"}]
    assert {g.get("data-owner") for g in owned} == {"A"}
    titles = [g.findtext("{*}title") for g in owned]
    assert titles == ["CPU 2: default/web/c", "CPU 3: default/web/c"]
    devices = {g.get("data-device"): g for g in root.iter() if g.get("data-device")}
    assert devices.keys() == {"gpu-0", "gpu-1", "bridge"}
    assert devices["gpu-0"].get("data-owner") == "A"
    assert devices["gpu-1"].findtext("{*}title") == f"{GPU} gpu-1: free, unhealthy"


def test_what_is_on_the_page() -> None:
    text = " ".join(parsed(report_page(node(), ["memory service is away"])).itertext())
    for expected in (
        "restricted",
        "default/web",
        "memory service is away",
        "something was re-based",
        "TopologyAffinityError",
        "Rejected: default/web holds 2.",
        "2 times",
        "1.2.3",
    ):
        assert expected in text


def test_names_are_text_and_never_markup() -> None:
    page = report_page(replace(node(pod=NASTY), node=NASTY), [NASTY])
    assert "<script" not in page
    assert NASTY in "".join(parsed(page).itertext())
    assert "default-src 'none'" in parsed(page).find(".//meta[@http-equiv]").attrib["content"]  # type: ignore[union-attr]


def test_nothing_on_the_node() -> None:
    empty = replace(node(), admissions=(), decisions=(), cpu=None, memory=None, device=None)
    text = " ".join(parsed(report_page(empty)).itertext())
    assert "No pods are admitted." in text
    assert "None is in the journal." in text


def test_more_owners_than_colours_have_letters_of_their_own() -> None:
    cpu = hp.CpuState(policy="static")
    for number in range(OWNER_COLOURS + 3):
        cpu.assignments.add(pod_uid=f"u{number}", container="c", cpus=str(number))
    described = machine_from_document(machine(2, 8))
    root = ET.fromstring(machine_svg(described, Books(cpu=cpu)).text)
    owners = values(root, "data-owner")
    assert len(owners) == OWNER_COLOURS + 4


@pytest.mark.parametrize(
    ("largest", "expected"),
    [
        pytest.param((4, 4), Scattered("cpu", 8, 4, 0), id="even"),
        pytest.param((1, 7), Scattered("cpu", 8, 7, 1), id="uneven"),
        pytest.param((0, 0), Scattered("cpu", 0, 0, None), id="full"),
    ],
)
def test_fragmentation(largest: tuple[int, int], expected: Scattered) -> None:
    resources = NodeResources()
    for number, cpus in enumerate(largest):
        part = resources.numa_nodes.add(numa_node=number)
        part.cpus.all = "0"
        part.largest_shape.cpus = cpus
    assert scattered(resources) == (expected,)
    share = 1 - expected.largest / expected.free if expected.free else 0
    assert expected.share == share


def test_markup() -> None:
    assert element("p", "a<b", Markup("<i/>"), class_='x"y').text == (
        '<p class="x&quot;y">a&lt;b<i/></p>'
    )


def test_a_page_of_no_snapshot(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["report", "--snapshot", "/nonexistent", "-o", "-"])
    assert result.exit_code == 1
    assert "/nonexistent: No such file" in result.stderr


def test_distances_are_shown_where_nodes_report_them() -> None:
    described = machine(2)
    for at, of in enumerate(described["numa_nodes"]):
        of["distances"] = [10, 21] if at == 0 else [21, 10]

    def rows(page: str) -> list[list[str]]:
        (fold,) = (
            found
            for found in parsed(page).iter("details")
            if (found.findtext("summary") or "").startswith("Distances")
        )
        return [[cell.text or "" for cell in row] for row in fold.iter("tr")]

    assert rows(report_page(node(described))) == [
        ["from, to", "0", "1"],
        ["node 0", "10", "21"],
        ["node 1", "21", "10"],
    ]
    assert "Distances" not in report_page(node())
