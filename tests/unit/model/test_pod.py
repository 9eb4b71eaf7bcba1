"""A pod as a value: its containers by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod

INIT, APP = Container(name="same", is_init=True), Container(name="same")
OTHER = Container(name="other")
POD = Pod(uid=PodUid("u"), init_containers=(INIT,), containers=(APP, OTHER))


def test_a_container_is_found_by_its_name_and_the_first_of_two() -> None:
    assert POD.container("same") is INIT
    assert POD.container("other") is OTHER


def test_a_name_that_no_container_has_is_an_error() -> None:
    with pytest.raises(KeyError, match="nobody"):
        POD.container("nobody")


def test_what_was_looked_up_is_no_part_of_the_value() -> None:
    asked, unasked = replace(POD), replace(POD)
    asked.container("other")
    assert asked == unasked
    assert replace(asked, containers=(APP,)).all_containers() == (INIT, APP)
    with pytest.raises(KeyError):
        replace(asked, containers=(APP,)).container("other")
