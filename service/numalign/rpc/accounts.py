"""Users and groups of the configuration as numbers.

Separate because the file of a socket, its access list and the check of its peers need them.
"""

from __future__ import annotations

import grp
import pwd

from numalign.errors import ConfigError


def user_id(user: str | int) -> int:
    """The number of a user given by name or number. Raises ConfigError for an unknown name."""
    if isinstance(user, int):
        return user
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError as error:
        raise ConfigError(f"socket owner: no user {user}") from error


def group_id(group: str | int) -> int:
    """The number of a group given by name or number. Raises ConfigError for an unknown name."""
    if isinstance(group, int):
        return group
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ConfigError(f"socket group: no group {group}") from error
