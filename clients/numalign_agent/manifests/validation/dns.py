"""Checks on how a pod resolves names."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from numalign.errors import FieldViolation
from numalign.kube.names import check_subdomain
from numalign.kube.violations import invalid, required
from numalign_agent.manifests.validation.words import Problems, check_one_of

Document = dict[str, Any]

_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCH = 3, 32, 2048
_PATH = "spec.dnsConfig"


def check_dns(spec: Document) -> Problems:
    """The policy, and servers, search paths and options beside it."""
    policy, config = spec["dnsPolicy"], spec.get("dnsConfig")
    yield from check_one_of("spec.dnsPolicy", policy, _POLICIES)
    if config is None:
        if policy == "None":
            yield required(_PATH, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers = config.get("nameservers", ())
    if policy == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{_PATH}.nameservers", detail)
    if len(servers) > _MOST_SERVERS:
        yield _too_many("nameservers", f"must not have more than {_MOST_SERVERS} nameservers")
    for index, server in enumerate(servers):
        if not _is_address(server):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid(f"{_PATH}.nameservers[{index}]", server, detail)
    yield from _check_searches(config.get("searches", ()))
    for index, option in enumerate(config.get("options", ())):
        if not option.get("name"):
            yield required(f"{_PATH}.options[{index}]", "must not be empty")


def _check_searches(searches: list[str]) -> Problems:
    if len(searches) > _MOST_SEARCHES:
        yield _too_many("searches", f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCH:
        yield _too_many(
            "searches",
            f"must not have more than {_LONGEST_SEARCH} characters (including spaces) in the "
            "search list",
        )
    for index, search in enumerate(searches):
        # One dot stands for the root; in the others underscores are common (SRV records).
        if search != ".":
            name = search.removesuffix(".").replace("_", "-").strip("-")
            yield from check_subdomain(f"{_PATH}.searches[{index}]", name)


def _too_many(field: str, detail: str) -> FieldViolation:
    return FieldViolation(f"{_PATH}.{field}", f"Invalid value: {detail}")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text
