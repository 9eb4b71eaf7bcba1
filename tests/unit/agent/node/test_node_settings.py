"""The `node` section of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.config.settings import Address
from numalign.document.problems import DocumentError
from numalign_agent.node.settings import (
    Counted,
    Fingerprint,
    NodeSettings,
    TopologySettings,
    node_settings,
)


def document(node: object = None, **agent: Any) -> dict[str, Any]:
    return {"numalign": {"agent": {"node": node, **agent}}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, NodeSettings(), id="nothing"),
        pytest.param(document(), NodeSettings(), id="no-section"),
        pytest.param(
            document({"topology": {}}), NodeSettings(topology=TopologySettings()), id="topology"
        ),
        pytest.param(
            document(
                {
                    "address": "127.0.0.1:9471",
                    "checkInterval": "2s",
                    "taint": {"restoreAfter": "5m"},
                    "topology": {
                        "fingerprint": "all",
                        "owners": ["default"],
                        "interval": "3s",
                        "heartbeat": "2m",
                        "deleteAtEnd": True,
                    },
                }
            ),
            NodeSettings(
                address=Address("127.0.0.1", 9471),
                check_every=2.0,
                restore_after=300.0,
                topology=TopologySettings(
                    counted=Counted(method=Fingerprint.ALL, owners=frozenset({"default"})),
                    interval=3.0,
                    heartbeat=120.0,
                    delete_at_end=True,
                ),
            ),
            id="everything",
        ),
        pytest.param(
            document({"taint": {"remove": False}}), NodeSettings(remove_taint=False), id="no-taint"
        ),
        pytest.param(
            document({"waitForRuntime": False}, nri={"onReject": "wait"}),
            NodeSettings(),
            id="a-plugin-that-is-not-waited-for",
        ),
    ],
)
def test_what_is_read(given: object, expected: NodeSettings) -> None:
    assert node_settings(given) == expected


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("0.0.0.0:9470", "http://127.0.0.1:9470/readyz"),
        ("10.0.0.1:80", "http://10.0.0.1:80/readyz"),
        ("[::]:9470", "http://[::1]:9470/readyz"),
    ],
)
def test_a_plugin_that_is_configured_is_waited_for(address: str, page: str) -> None:
    assert node_settings(document(nri={"address": address})).runtime_page == page


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(document({"place": "x"}), "node.place: unknown key", id="key"),
        pytest.param(
            document({"taint": {"remove": False, "restoreAfter": "5m"}}),
            "node.taint.restoreAfter: goes with remove: true only",
            id="put-back-for-good",
        ),
        pytest.param(
            document({"topology": {"fingerprint": "some"}}),
            'node.topology.fingerprint: must be one of "with-exclusive-resources"',
            id="fingerprint",
        ),
        pytest.param(
            document({"topology": {"owners": ["a", 7]}}),
            "node.topology.owners[1]: must be the name of an owner, not 7",
            id="owner",
        ),
        pytest.param(
            document({"topology": {"interval": 5}}), "node.topology.interval: must be", id="time"
        ),
        pytest.param(
            document(nri={}),
            "nri.address: must be given with a port, so that it can be asked whether the plugin is "
            "connected; without a plugin set numalign.agent.node.waitForRuntime to false",
            id="a-plugin-without-a-page",
        ),
        pytest.param(
            document({"waitForRuntime": True}), "nri.address: must be given", id="no-plugin"
        ),
    ],
)
def test_what_is_refused(given: object, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        node_settings(given)

    assert f"numalign.agent.{problem}" in str(caught.value)
