"""Sockets, endpoints and addresses: where services listen and who may connect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from numalign.config.settings import Address, Service, SocketSettings
from numalign.document.section import Section, shown
from numalign.model.quoting import quoted

LONGEST_SOCKET_PATH = 107
"""Bytes of a path that the kernel takes for a Unix socket."""

OTHERS_WRITE = 0o002
"""The bit of a socket's mode that lets every user connect."""

_MODE = re.compile(r"0?[0-7]{3}\Z")
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+):(?P<port>[0-9]{1,5})\Z", re.ASCII)
_LARGEST_PORT = 65535


def read_sockets(section: Section) -> SocketSettings:
    """Mode, owner and group of every socket, and who else may connect."""
    section.refuse_unknown(("mode", "owner", "group", "allow"))
    mode = section.text("mode", "0660")
    if not _MODE.match(mode):
        section.wrong("mode", f'must be octal text such as "0660", not {quoted(mode)}')
        mode = "0660"
    allow = section.section("allow")
    allow.refuse_unknown(("uids", "gids"))
    settings = SocketSettings(
        mode=int(mode, 8),
        owner=_account(section, "owner"),
        group=_account(section, "group"),
        allow_uids=_accounts(allow, "uids"),
        allow_gids=_accounts(allow, "gids"),
    )
    if settings.mode & OTHERS_WRITE and (settings.allow_uids or settings.allow_gids):
        section.wrong("allow", f"has no meaning with mode {mode}, which lets every user connect")
    return settings


def read_endpoints(section: Section, runtime_directory: Path) -> dict[Service, Path]:
    """The socket of every service: its own entry, else `<runtime directory>/<service>.sock`."""
    section.refuse_unknown(Service)
    endpoints: dict[Service, Path] = {}
    for service in Service:
        default = str(runtime_directory / f"{service.value}.sock")
        endpoints[service] = socket_path(section, service.value, section.text(service, default))
    by_path: dict[Path, Service] = {}
    for service, path in endpoints.items():
        other = by_path.setdefault(path, service)
        if other is not service:
            section.wrong(service, f"is the socket of {other.value} too")
    return endpoints


def read_pod_resources(
    section: Section, key: str, runtime_directory: Path, endpoints: Mapping[Service, Path]
) -> Path | None:
    """The socket of the kubelet's pod resources interface; None where `key` is not given."""
    if key not in section:
        return None
    inner = section.section(key)
    inner.refuse_unknown(("socket",))
    default = str(runtime_directory / "pod-resources.sock")
    path = socket_path(inner, "socket", inner.text("socket", default))
    for service, endpoint in endpoints.items():
        if endpoint == path:
            inner.wrong("socket", f"is the socket of {service.value} too")
    return path


def socket_path(section: Section, key: str, text: str) -> Path:
    """The path that `text`, the value of `key`, names: a path or `unix:` and a path.

    Recorded are a path that is not absolute and one that is too long for a socket.
    """
    path = text.removeprefix("unix://") if text.startswith("unix:///") else text
    path = path.removeprefix("unix:")
    if text and not path.startswith("/"):
        section.wrong(key, f"must be the absolute path of a Unix socket, not {shown(text)}")
    elif (length := len(path.encode())) > LONGEST_SOCKET_PATH:
        section.wrong(key, f"{path} has {length} bytes; a socket takes {LONGEST_SOCKET_PATH}")
    return Path(path)


def read_address(section: Section, key: str) -> Address | None:
    """A `host:port` such as `127.0.0.1:9464`; None where it is not given or wrong."""
    if key not in section:
        return None
    text = section.text(key)
    found = _ADDRESS.match(text)
    if found is None or int(found["port"]) > _LARGEST_PORT:
        if isinstance(section.raw(key), str):
            section.wrong(key, f"must be host:port, not {quoted(text)}")
        return None
    return Address(found["host"].strip("[]"), int(found["port"]))


def _account(section: Section, key: str) -> str | int | None:
    """A user or group: its name, or its number."""
    value = section.raw(key)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return section.text(key) or None


def _accounts(section: Section, key: str) -> tuple[str | int, ...]:
    """A list of users or groups."""
    accounts: list[str | int] = []
    for path, item in section.items(key):
        if (isinstance(item, int) and not isinstance(item, bool) and item >= 0) or (
            isinstance(item, str) and item
        ):
            accounts.append(item)
        else:
            section.problems.add(path, f"must be a name or a number, not {shown(item)}")
    return tuple(accounts)
