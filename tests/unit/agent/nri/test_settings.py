"""The `nri` section: what it may say, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numalign.config.settings import Address, SecondOwner
from numalign.document.problems import DocumentError
from numalign.process.second_owner.rules import Resource
from numalign_agent.nri.plan.refusals import OnReject
from numalign_agent.nri.settings import NriSettings, Updates, nri_settings


def read(section: Any, **numalign: Any) -> NriSettings:
    return nri_settings({"numalign": {**numalign, "agent": {"nri": section}}})


def test_defaults() -> None:
    assert nri_settings({}) == NriSettings(policies={Resource.CPU: "", Resource.MEMORY: ""})


def test_everything() -> None:
    document = {
        "cpuManagerPolicy": "static",
        "numalign": {
            "secondOwner": "tolerate",
            "hostRoot": "/host",
            "agent": {
                "nri": {
                    "socket": "/run/k3s/nri.sock",
                    "index": "07",
                    "owner": "kubelet",
                    "onReject": "evict",
                    "exemptNamespaces": ["a", "b"],
                    "injectDevices": True,
                    "liftQuota": False,
                    "updates": "direct",
                    "checkInterval": "30s",
                    "releaseAfter": "1m",
                    "requestTimeout": "5s",
                    "address": "127.0.0.1:9470",
                }
            },
        },
    }

    assert nri_settings(document) == NriSettings(
        socket=Path("/run/k3s/nri.sock"),
        index="07",
        owner="kubelet",
        on_reject=OnReject.EVICT,
        exempt_namespaces=frozenset({"a", "b"}),
        inject_devices=True,
        lift_quota=False,
        updates=Updates.DIRECT,
        check_every=30.0,
        release_after=60.0,
        request_timeout=5.0,
        address=Address("127.0.0.1", 9470),
        policies={Resource.CPU: "static", Resource.MEMORY: ""},
        second_owner=SecondOwner.TOLERATE,
        host_root=Path("/host"),
    )


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        pytest.param({"sokcet": "/x"}, "numalign.agent.nri.sokcet: unknown key", id="unknown"),
        pytest.param(
            {"socket": "nri.sock"},
            'nri.socket: must be an absolute path, not "nri.sock"',
            id="path",
        ),
        pytest.param({"index": "7"}, "nri.index: must be two digits in quotes", id="index"),
        pytest.param({"index": 90}, "nri.index: must be text, not 90", id="index-number"),
        pytest.param({"onReject": "no"}, "nri.onReject: must be one of", id="on-reject"),
        pytest.param({"exemptNamespaces": "x"}, "exemptNamespaces: must be a list", id="names"),
        pytest.param({"exemptNamespaces": [1]}, "exemptNamespaces[0]: must be text", id="name"),
        pytest.param({"checkInterval": "0s"}, "checkInterval: must be longer", id="interval"),
        pytest.param({"updates": "maybe"}, "updates: must be one of", id="updates"),
        pytest.param({"address": "9470"}, "address: must be host:port", id="address"),
        pytest.param("no mapping", "nri: must be a mapping", id="section"),
    ],
)
def test_mistakes_are_named(section: Any, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(section)

    assert problem in str(caught.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(DocumentError) as caught:
        read({"index": "x", "onReject": "y"}, secondOwner="z")

    assert len(caught.value.problems) == 3
