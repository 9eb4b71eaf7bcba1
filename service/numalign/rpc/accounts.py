"""Users and groups of the configuration as numbers.

Separate because the file of a socket, its access list and the check of its peers need them.
"""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable
from dataclasses import dataclass

from numalign.config.settings import SocketSettings
from numalign.document.problems import Problems
from numalign.model.quoting import quoted

UNCHANGED = -1
"""The number that leaves an owner or group as it is."""

_SECTION = "numalign.sockets"


@dataclass(frozen=True, slots=True)
class Accounts:
    """Who owns sockets, and who else may connect. Owner and group may be `UNCHANGED`."""

    owner: int
    group: int
    uids: tuple[int, ...]
    gids: tuple[int, ...]


def accounts_of(settings: SocketSettings) -> Accounts:
    """The accounts that the settings name.

    Raises ConfigError with a line for each name that this system does not know.
    """
    problems = Problems()

    def number(
        key: str, kind: str, account: str | int | None, look_up: Callable[[str], int]
    ) -> int:
        if account is None:
            return UNCHANGED
        if isinstance(account, int):
            return account
        try:
            return look_up(account)
        except KeyError:
            problems.add(f"{_SECTION}.{key}", f"there is no {kind} {quoted(account)} here")
            return UNCHANGED

    accounts = Accounts(
        owner=number("owner", "user", settings.owner, _user),
        group=number("group", "group", settings.group, _group),
        uids=tuple(
            number(f"allow.uids[{index}]", "user", account, _user)
            for index, account in enumerate(settings.allow_uids)
        ),
        gids=tuple(
            number(f"allow.gids[{index}]", "group", account, _group)
            for index, account in enumerate(settings.allow_gids)
        ),
    )
    problems.refuse()
    return accounts


def _user(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def _group(name: str) -> int:
    return grp.getgrnam(name).gr_gid
