"""The agent's configuration: what it means, and every mistake by its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from numalign.admission.handlers.node_shutdown import GraceGroup
from numalign.config.defaults import Directories
from numalign.document.problems import DocumentError
from numalign_agent.config.loading import IN_AGENT, load_settings
from numalign_agent.config.reading import AgentDefaults, read_settings
from numalign_agent.config.settings import (
    AgentSettings,
    ApiSettings,
    FileSourceSettings,
    HttpSettings,
    HttpSourceSettings,
    KubeletSourceSettings,
    RunnerKind,
    ShutdownSettings,
)

DEFAULTS = AgentDefaults(
    hostname="Node-A.example",
    directories=Directories(runtime=Path("/run/numalign"), state=Path("/var/lib/numalign")),
    base_directory=Path("/etc/numalign"),
)


def read(agent: dict[str, Any] | None = None, **kubelet: Any) -> AgentSettings:
    document = {**kubelet, "numalign": {**kubelet.get("numalign", {}), "agent": agent or {}}}
    return read_settings(document, DEFAULTS)


def test_defaults() -> None:
    assert read() == AgentSettings(
        node_name="node-a.example",
        owner="agent",
        admission_socket=Path("/run/numalign/admission.sock"),
        state_directory=Path("/var/lib/numalign/agent"),
    )
    assert read_settings({}, DEFAULTS) == read()


def test_the_services_say_whether_claims_are_hints() -> None:
    document = {"numalign": {"dra": {"enabled": True, "numaHints": True}}}

    assert read_settings(document, DEFAULTS).claim_hints


def test_who_says_that_the_node_shuts_down() -> None:
    bus = "unix:path=/run/bus"
    said = {"admission": {"shutdown": {"source": "logind", "bus": bus}}}
    periods = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
    groups = (GraceGroup(0, 20.0), GraceGroup(2_000_000_000, 10.0))

    assert read_settings({"numalign": said, **periods}, DEFAULTS).shutdown == ShutdownSettings(
        groups=groups, bus=bus
    )
    assert read_settings({"numalign": said}, DEFAULTS).shutdown is None
    assert read_settings(periods, DEFAULTS).shutdown is None


def test_everything() -> None:
    settings = read(
        {
            "nodeName": "n1",
            "owner": "o",
            "runner": "recorder",
            "enforce": "none",
            "stateDirectory": "/s",
            "podLogsDirectory": "/l",
            "address": "127.0.0.1:0",
            "api": {"kubeconfig": "kubeconfig", "context": "c", "ownNode": True},
            "reconcileFrequency": "3s",
            "checkInterval": "4s",
            "journalEntries": 200,
            "nri": {"onReject": "wait"},
        },
        staticPodPath="manifests/",
        fileCheckFrequency="1m",
        staticPodURL="http://h/pods",
        staticPodURLHeader={"X-A": ["1", "2"]},
        syncFrequency="30s",
        nodeLeaseDurationSeconds=20,
        numalign={"log": {"level": "debug", "format": "console"}},
    )

    assert settings.enforce.value == "none"
    assert settings == AgentSettings(
        node_name="n1",
        owner="o",
        admission_socket=Path("/run/numalign/admission.sock"),
        state_directory=Path("/s"),
        log_level="debug",
        log_format="console",
        file=FileSourceSettings(path=Path("/etc/numalign/manifests"), every=60.0),
        url=HttpSourceSettings(url="http://h/pods", headers={"X-A": ("1", "2")}),
        api=ApiSettings(
            kubeconfig=Path("/etc/numalign/kubeconfig"),
            context="c",
            own_node=True,
            lease_seconds=20.0,
        ),
        runner=RunnerKind.RECORDER,
        enforce=settings.enforce,
        pod_logs_directory=Path("/l"),
        http=HttpSettings(host="127.0.0.1", port=0),
        sync_every=30.0,
        reconcile_every=3.0,
        check_every=4.0,
        journal_entries=200,
        nri={"onReject": "wait"},
    )


def test_a_kubelet_that_is_followed() -> None:
    kubelet = {"url": "https://localhost:10250/pods", "tokenFile": "t", "caFile": "/ca"}

    assert read({"runner": "recorder", "kubelet": kubelet}).kubelet == KubeletSourceSettings(
        url="https://localhost:10250/pods",
        token_file=Path("/etc/numalign/t"),
        ca_file=Path("/ca"),
    )


@pytest.mark.parametrize(
    ("agent", "kubelet", "problem"),
    [
        ({"nodeNam": "x"}, {}, "numalign.agent.nodeNam: unknown key"),
        ({"runner": "docker"}, {}, 'numalign.agent.runner: must be one of "process", "recorder"'),
        ({"stateDirectory": "s"}, {}, 'stateDirectory: must be an absolute path, not "s"'),
        ({"address": "9464"}, {}, 'numalign.agent.address: must be host:port, not "9464"'),
        ({"journalEntries": 1}, {}, "numalign.agent.journalEntries: must be at least 100, not 1"),
        ({"reconcileFrequency": "0s"}, {}, "reconcileFrequency: must be longer than 0"),
        ({"api": {"kubeconfi": "x"}}, {}, "numalign.agent.api.kubeconfi: unknown key"),
        ({"kubelet": {}}, {}, "numalign.agent.kubelet: must have either a socket or a url"),
        (
            {"kubelet": {"url": "http://h/pods"}, "runner": "recorder"},
            {},
            "numalign.agent.kubelet.url: must be an https URL",
        ),
        (
            {"kubelet": {"socket": "/k.sock"}},
            {},
            "numalign.agent.kubelet: goes with runner: recorder only",
        ),
        ({}, {"staticPodURL": "ftp://h"}, "staticPodURL: must be an http or https URL"),
        ({}, {"staticPodURLHeader": {"A": [1]}}, "staticPodURLHeader.A[0]: must be text, not 1"),
        ({}, {"staticPodPath": 5}, "staticPodPath: must be text, not 5"),
        ({}, {"syncFrequency": "soon"}, "syncFrequency: must be a duration"),
    ],
)
def test_mistakes(agent: dict[str, Any], kubelet: dict[str, Any], problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read(agent, **kubelet)

    assert problem in str(refused.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(DocumentError) as refused:
        read({"owner": 1, "runner": "x"}, staticPodURL="y")

    assert len(refused.value.problems) == 3


def test_without_a_home_directories_must_be_given() -> None:
    nowhere = AgentDefaults(
        hostname="h",
        directories=Directories(runtime=None, state=None),
        base_directory=Path("/"),
    )
    with pytest.raises(DocumentError) as refused:
        read_settings({}, nowhere)

    assert [problem.split(":")[0] for problem in refused.value.problems] == [
        "numalign.runtimeDirectory",
        "numalign.agent.stateDirectory",
    ]


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"numalign": {"agent": {"owner": "o", "nodeName": "n"}}}))
    settings = load_settings(
        path, {(*IN_AGENT, "nodeName"): "other", ("staticPodPath",): "/manifests"}
    )

    assert (settings.owner, settings.node_name) == ("o", "other")
    assert settings.file == FileSourceSettings(path=Path("/manifests"))


def test_a_section_that_is_none_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("numalign: {agent: 7}")
    with pytest.raises(DocumentError, match=r"numalign\.agent: must be a mapping, not 7"):
        load_settings(path, {(*IN_AGENT, "nodeName"): "other"})
