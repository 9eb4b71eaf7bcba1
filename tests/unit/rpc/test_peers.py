"""Who may connect to a socket, tried as other users, and who is cut off when they are in."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from pathlib import Path

import pytest
from tests.unit.rpc.echo import Echo, EchoStub, registration

from numalign.config.settings import SocketSettings
from numalign.errors import ConfigError
from numalign.rpc import server as server_module
from numalign.rpc.access_list import packed
from numalign.rpc.channel import open_channel
from numalign.rpc.peers import Allowed, Peer, PeerCheck, allowed_by
from numalign.rpc.server import ServiceServer
from numalign.rpc.socket_file import guard

ROOT_ONLY = pytest.mark.skipif(
    os.geteuid() != 0 and "CI" not in os.environ, reason="only root can become another user"
)
OWNER, MEMBER, LISTED, LISTED_GROUP, STRANGER = 23001, 23002, 23003, 23004, 23005
CALLER = Path(__file__).with_name("other_user.py")
REFUSED = ["Permission denied", "UNAVAILABLE"]


async def start_as(
    uid: int, gid: int, groups: str, path: Path, *, hold: bool = False
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(CALLER),
        str(uid),
        str(gid),
        groups,
        str(int(hold)),
        str(path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )


async def as_user(uid: int, gid: int, groups: str, path: Path) -> list[str]:
    process = await start_as(uid, gid, groups, path)
    output, _ = await asyncio.wait_for(process.communicate(), 90)
    answer: list[str] = json.loads(output)[str(path)]
    return answer


@pytest.fixture
def directory(run_directory: Path) -> Path:
    """A directory that other users can reach."""
    run_directory.chmod(0o755)
    return run_directory


@ROOT_ONLY
@pytest.mark.parametrize(
    ("uid", "gid", "groups", "answer"),
    [
        pytest.param(0, 0, "", ["connected", "OK"], id="root"),
        pytest.param(OWNER, 1, "", ["connected", "OK"], id="the owner"),
        pytest.param(STRANGER, MEMBER, "", ["connected", "OK"], id="the group"),
        pytest.param(STRANGER, 1, f"5,{MEMBER}", ["connected", "OK"], id="a member of the group"),
        pytest.param(LISTED, 1, "", ["connected", "OK"], id="a listed user"),
        pytest.param(STRANGER, LISTED_GROUP, "", ["connected", "OK"], id="a listed group"),
        pytest.param(STRANGER, 1, f"{LISTED_GROUP}", ["connected", "OK"], id="a listed member"),
        pytest.param(STRANGER, 1, "5,6", REFUSED, id="a stranger"),
        pytest.param(STRANGER, 0, "0", REFUSED, id="a stranger in the group of root"),
        pytest.param(MEMBER, LISTED, "", REFUSED, id="numbers of the other kind"),
    ],
)
async def test_who_may_connect(
    directory: Path, uid: int, gid: int, groups: str, answer: list[str]
) -> None:
    settings = SocketSettings(
        owner=OWNER, group=MEMBER, allow_uids=(LISTED,), allow_gids=(LISTED_GROUP,)
    )
    path = directory / "run" / "s"
    server = ServiceServer([registration(Echo())], path, settings)
    await server.start()
    try:
        assert await as_user(uid, gid, groups, path) == answer
        # Whoever was let in is not cut off later.
        assert server._peers is not None
        assert server._peers.cut_off_strangers() == []
    finally:
        await server.stop(0)


@ROOT_ONLY
async def test_until_it_is_handed_over_it_is_for_its_owner_alone(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def guard_late(path: Path, settings: SocketSettings) -> None:
        seen.append(stat.S_IMODE(path.stat().st_mode))
        guard(path, settings)

    monkeypatch.setattr(server_module, "guard", guard_late)
    path = directory / "run" / "s"
    server = ServiceServer([registration(Echo())], path, SocketSettings(group=MEMBER))
    await server.start()
    await server.stop(0)

    assert seen == [0o600]


@ROOT_ONLY
async def test_entries_of_the_directory_are_not_inherited(directory: Path) -> None:
    run = directory / "run"
    make_open_by_default(run, STRANGER)
    server = ServiceServer([registration(Echo())], run / "s", SocketSettings(group=MEMBER))
    await server.start()
    try:
        assert await as_user(STRANGER, 1, "", run / "s") == REFUSED
        assert await as_user(STRANGER, MEMBER, "", run / "s") == ["connected", "OK"]
    finally:
        await server.stop(0)


@ROOT_ONLY
async def test_without_a_list_only_root_and_the_group(directory: Path) -> None:
    path = directory / "run" / "s"
    server = ServiceServer([registration(Echo())], path, SocketSettings(group=MEMBER))
    await server.start()
    try:
        assert await as_user(STRANGER, MEMBER, "", path) == ["connected", "OK"]
        assert await as_user(LISTED, 1, "", path) == REFUSED
    finally:
        await server.stop(0)


def make_open_by_default(directory: Path, uid: int) -> None:
    """A directory in which everything that is made is for `uid` as well."""
    directory.mkdir(mode=0o755)
    os.setxattr(directory, "system.posix_acl_default", packed(0o777, {(2, uid): 7}))


def set_mode(path: Path, mode: int) -> None:
    path.parent.chmod(0o755)
    path.chmod(mode)


@ROOT_ONLY
async def test_a_stranger_who_gets_in_is_cut_off(
    directory: Path,
) -> None:
    path = directory / "run" / "s"
    server = ServiceServer([registration(Echo())], path, SocketSettings(group=MEMBER))
    await server.start()
    try:
        set_mode(path, 0o666)
        stranger = await start_as(STRANGER, 1, "", path, hold=True)
        assert stranger.stdout is not None
        assert await asyncio.wait_for(stranger.stdout.readline(), 90) == b"ready\n"
        async with open_channel(path) as channel:
            assert await EchoStub(channel).Unary(b"x") == b"x"
            await asyncio.sleep(2.5)
            set_mode(path, 0o660)
            output, _ = await asyncio.wait_for(stranger.communicate(b"\n"), 90)
            assert json.loads(output)[str(path)][1] == "UNAVAILABLE"
            assert await EchoStub(channel).Unary(b"x") == b"x"
    finally:
        await server.stop(0)


async def test_the_check_leaves_other_sockets_alone(run_directory: Path) -> None:
    check = PeerCheck(run_directory / "mine", Allowed(frozenset({4711}), frozenset()))
    pairs = []
    for name in ("mine", "other"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(run_directory / name))
        listener.listen(5)
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(run_directory / name))
        pairs.append((listener, client, listener.accept()[0]))

    strangers = check.cut_off_strangers()

    assert [(peer.pid, peer.uid) for peer in strangers] == [(os.getpid(), os.geteuid())]
    assert os.getegid() in strangers[0].gids
    (_, mine, _), (_, other, accepted) = pairs
    assert mine.recv(1) == b""
    accepted.send(b"x")
    assert other.recv(1) == b"x"
    assert check.cut_off_strangers() == []
    for sockets in pairs:
        for opened in sockets:
            opened.close()


@pytest.mark.parametrize(
    ("mode", "permitted"),
    [
        pytest.param(0o660, {"root", "owner", "group"}, id="0660"),
        pytest.param(0o600, {"root", "owner"}, id="0600"),
        pytest.param(0o060, {"root", "group"}, id="0060"),
        pytest.param(0o440, {"root"}, id="0440"),
    ],
)
def test_whom_a_mode_permits(mode: int, permitted: set[str]) -> None:
    peers = {
        "root": Peer(1, 0, frozenset({0})),
        "owner": Peer(2, OWNER, frozenset({1})),
        "group": Peer(3, STRANGER, frozenset({1, MEMBER})),
        "stranger": Peer(4, STRANGER, frozenset({1})),
    }
    allowed = allowed_by(mode, OWNER, MEMBER, frozenset({0}), frozenset())

    assert allowed is not None
    assert {name for name, peer in peers.items() if allowed.permits(peer)} == permitted


def test_a_mode_for_everybody_permits_everybody() -> None:
    assert allowed_by(0o666, OWNER, MEMBER, frozenset(), frozenset()) is None


@pytest.fixture
def open_directory(run_directory: Path) -> Path:
    """A directory in which anybody may write."""
    run_directory.chmod(0o777)
    return run_directory


async def test_a_directory_where_anybody_may_write_is_refused(open_directory: Path) -> None:
    server = ServiceServer([registration(Echo())], open_directory / "s", SocketSettings())
    with pytest.raises(ConfigError, match=f"every user may replace what is in {open_directory}"):
        await server.start()
