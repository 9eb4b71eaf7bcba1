"""What a page takes for granted before its first command, and which ends are the ones it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ADMITTED = ("01-database", "02-training", "03-web", "04-pipeline")
_CARD = """
apiVersion: v1
kind: Pod
metadata: {name: card}
spec:
  containers:
  - name: app
    resources: {limits: {example.com/card: "1"}}
"""
_SMALL = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  containers: [{name: app}]
"""
_RUNNING = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: none
    command: [sleep, "120"]
    resources: {limits: {cpu: "%s", memory: 64Mi}}
"""
_ALIGNED = """
topologyManagerPolicy: single-numa-node
cpuManagerPolicy: static
reservedSystemCPUs: 0,8
"""
_HANDLER = {"name": "pod-quota", "before": "topology-manager", "timeout": "2s"}


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of one page.

    `before` are commands of numalign; those of `after` take away what outlives the services, until
    the last one ends well. `files` go into the directory, `section` is merged into the
    numalign section of the configuration, where `{here}` is the directory. `codes` are the ends
    that are meant by the beginning of the line, where it is not 0. `stays` begin lines that run on,
    although no `&` says so, and `added` is put behind lines that begin so. What `settles` begins
    is typed again until it ends as meant.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    section: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)
    stays: tuple[str, ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)
    settles: tuple[str, ...] = ()
    serves: bool = True


_PLUGIN = "python -m examples.device_plugin"
_SOCKETS = "--sockets {here}/kubelet/device-plugins"
_HOST = {
    "devices": None,
    "devicePlugins": {
        "mode": "host",
        "directory": "{here}/kubelet/device-plugins",
        "pluginsRegistry": "{here}/kubelet/plugins_registry",
    },
}

SETTINGS = {
    "README.md": Setting(codes={"numalign admit deploy/samples/05": 3}),
    "clients/examples/device_plugin/README.md": Setting(
        section=_HOST,
        places={"/tmp/cards": "{here}/cards"},
        stays=(_PLUGIN,),
        added={_PLUGIN: _SOCKETS},
    ),
    "clients/examples/dra-driver/README.md": Setting(
        places={"/tmp/dra": "{here}/dra"},
        stays=("python clients/examples/dra-driver",),
        serves=False,
    ),
    "docs/agent.md": Setting(
        files={
            "config.yaml": _ALIGNED,
            "manifests/a.yaml": _RUNNING % ("web", "1"),
            "manifests/b.yaml": _RUNNING % ("big", "20"),
        },
        section={"agent": {"nodeName": "node1", "enforce": "none"}},
        settles=("numalign-agent pods",),
        after=("rm manifests/a.yaml", "! numalign-agent pods | grep -q web-node1"),
    ),
    "docs/device-plugins.md": Setting(
        files={"card.yaml": _CARD},
        section=_HOST,
        places={"/tmp/cards": "{here}/cards"},
        added={_PLUGIN: _SOCKETS},
        codes={"numalign admit card.yaml#2": 3},
        settles=("numalign admit card.yaml",),
    ),
    "docs/how-to/ai-node.md": Setting(codes={"numalign admit second.yaml": 3}),
    "docs/how-to/beside-a-kubelet.md": Setting(),
    "docs/how-to/telco-node.md": Setting(codes={"numalign admit second.yaml": 3}),
    "docs/user/policies.md": Setting(
        codes={"numalign simulate 05-analytics.yaml --policy restricted": 3}
    ),
    "docs/user/troubleshooting.md": Setting(
        before=tuple(f"numalign admit {name}.yaml" for name in (*ADMITTED, "05-analytics")),
        codes={"numalign admit 05": 3, "numalign simulate 05-analytics.yaml": 3},
    ),
    "docs/writing-an-admit-handler.md": Setting(
        files={"a.yaml": _SMALL % "a", "b.yaml": _SMALL % "b"},
        section={"admission": {"handlers": [{**_HANDLER, "endpoint": "{here}/quota.sock"}]}},
        codes={"numalign admit a.yaml b.yaml": 3},
        settles=("numalign admit a.yaml",),
    ),
}
"""By page. Any other has the node of the demonstration, and all its commands end well."""
