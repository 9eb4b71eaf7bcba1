"""Settings written out and read again are the same settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from numalign.config.extension import EXTENSION_KEYS
from numalign.config.loader import load_settings
from numalign.config.settings import Settings
from numalign.config.settings_document import settings_document

ENVIRONMENT = {"HOME": "/home/u"}

FULL = """
topologyManagerPolicy: restricted
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
reservedSystemCPUs: "0"
memoryManagerPolicy: Static
kubeReserved: {memory: 412Mi, cpu: 500m}
evictionHard: {memory.available: 100Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 512Mi}}]
maxPods: 50
numalign:
  compatibility: kubelet
  sockets: {mode: "0600", group: staff, allow: {uids: [agent, 7], gids: [9]}}
  limits: {connections: 3, calls: 9, callTimeout: 1500ms}
  listen: [{address: "[::1]:7443", tls: {cert: /tls/a.crt, key: /tls/a.key, clientCA: /tls/ca}}]
  providerDirectories: [/run/others]
  providersRegistry: /run/found
  secondOwner: tolerate
  hostRoot: /host
  kubeletConfigz: {url: "https://h/configz", tokenFile: /t, caFile: /ca}
  endpoints: {cpu: /run/other/cpu.sock}
  podResources: {socket: /run/pods.sock}
  devicePlugins: {pluginsRegistry: "", reportDeadline: 90s}
  dra: {enabled: true, pluginsRegistry: /dra, callTimeout: 9s, retryAfter: 1s, numaHints: true}
  placement: {numaAllocationStrategy: most-allocated, keepSharedCpus: true,
              cpuAndMemoryFirst: true, retryInPodScope: true,
              reuseInitCpus: true, fewUncoreCaches: true, fewSockets: true,
              kernelHugePages: defer}
  admission:
    chain: v1.31
    node: /etc/node.yaml
    declaredFeatures: [A]
    imageFs: /images
    shutdown: {source: logind, bus: "unix:path=/run/bus"}
    handlers:
    - {name: first, endpoint: /run/a.sock, before: eviction, timeout: 1s, failurePolicy: Ignore}
    - {name: second, endpoint: /run/b.sock}
  machine:
    numa_nodes:
    - {id: 0, memory_bytes: 1073741824, cores: [{id: 0, socket_id: 0, threads: [0, 1]}]}
  devices:
  - resource: example.com/gpu
    preferred_allocation: lowest-id
    devices: [{id: g0, numa_nodes: [0]}, {id: g1, healthy: false}, {id: g2, numa_nodes: []}]
  providers:
  - {name: licences, endpoint: /run/l.sock, timeout: 250ms, failurePolicy: Ignore}
  providerTimeout: 2s
  queueDepth: 3
  historyLength: 77
  journal: {size: 64Ki}
  metrics: {address: "127.0.0.1:9464", services: {cpu: "[::1]:0"}}
  log: {level: debug, format: console}
  owner: me
"""


def load(path: Path, text: str) -> Settings:
    path.write_text(text)
    return load_settings(path, ENVIRONMENT, False)


@pytest.mark.parametrize(
    "text", [pytest.param("{}", id="defaults"), pytest.param(FULL, id="everything")]
)
def test_read_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    settings = load(path, text)
    again = load(path, yaml.safe_dump(settings_document(settings)))

    assert replace(again, kubelet={}, warnings=()) == replace(settings, kubelet={}, warnings=())


def test_no_key_is_left_out(tmp_path: Path) -> None:
    """But the agent's own, which the services do not read."""
    written = settings_document(load(tmp_path / "c.yaml", FULL))["numalign"]

    assert written.keys() == set(EXTENSION_KEYS) - {"agent"}


def test_other_kubelet_keys_stay(tmp_path: Path) -> None:
    assert settings_document(load(tmp_path / "c.yaml", FULL))["maxPods"] == 50
