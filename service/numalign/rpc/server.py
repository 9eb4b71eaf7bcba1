"""One way to build and run a server on a Unix socket.

Separate from `process`, which runs the servers of one process until a signal comes, and from
`grpc_server`, which is the same wherever a server listens.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from grpc import aio

from numalign.config.settings import LimitSettings, SocketSettings
from numalign.errors import ConfigError
from numalign.rpc.accounts import accounts_of
from numalign.rpc.channel import socket_target
from numalign.rpc.grpc_server import GrpcServer
from numalign.rpc.methods import Registration
from numalign.rpc.peers import PeerCheck, allowed_by
from numalign.rpc.socket_file import claim, created_with, guard
from numalign.telemetry.logs import get_logger
from numalign.telemetry.spans import Tracer

_ROOT = 0
_OWNER_ONLY = 0o700
_log = get_logger("rpc")


class ServiceServer(GrpcServer):
    """A server for some servicers on one socket, open to those whom the settings name."""

    def __init__(
        self,
        registrations: Iterable[Registration],
        path: Path,
        socket: SocketSettings,
        tracer: Tracer | None = None,
        limits: LimitSettings | None = None,
        *,
        call_streams: bool = False,
    ) -> None:
        """Build it; nothing is opened yet. Raises TypeError for a servicer of a wrong shape."""
        limits = limits or LimitSettings()
        super().__init__(registrations, str(path), tracer, limits, call_streams=call_streams)
        self.path = path
        self._socket = socket
        self._inode: int | None = None
        self._peers: PeerCheck | None = None

    def _claim(self) -> None:
        claim(self.path, self._socket)

    def _listen(self, server: aio.Server) -> None:
        try:
            # For its owner alone until it has been handed to whom it is for.
            with created_with(self._socket.mode & _OWNER_ONLY):
                server.add_insecure_port(socket_target(self.path))
        except RuntimeError as error:
            raise ConfigError(f"socket {self.path}: cannot listen there: {error}") from error
        guard(self.path, self._socket)
        accounts = accounts_of(self._socket)
        status = self.path.stat()
        self._inode = status.st_ino
        allowed = allowed_by(
            self._socket.mode,
            status.st_uid,
            status.st_gid,
            frozenset({_ROOT, os.geteuid(), *accounts.uids}),
            frozenset(accounts.gids),
        )
        self._peers = None if allowed is None else PeerCheck(self.path, allowed)

    def _check_peers(self) -> None:
        if self._peers is None:
            return
        for peer in self._peers.cut_off_strangers():
            _log.warning(
                "connection of a stranger cut off",
                socket=self.address,
                uid=peer.uid,
                gids=sorted(peer.gids),
                pid=peer.pid,
            )

    def _stopped(self) -> None:
        # gRPC removes the socket; but one that a successor made meanwhile is not ours.
        if self.path.exists() and self.path.stat().st_ino == self._inode:
            self.path.unlink()
