"""A server on a TCP port, for callers with a certificate of a configured authority.

Separate from `server`: a Unix socket has peers whom the kernel knows, a port has only what its
callers prove. There is no way to open one without certificates.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any

import grpc
from grpc import aio

from numalign.config.settings import LimitSettings, ListenSettings, TlsFiles
from numalign.errors import ConfigError
from numalign.rpc.grpc_server import GrpcServer
from numalign.rpc.methods import Registration
from numalign.telemetry.logs import get_logger
from numalign.telemetry.spans import Tracer

_log = get_logger("rpc")


class TlsServer(GrpcServer):
    """A server for some servicers on one TCP port. `port` is the one it listens at."""

    def __init__(
        self,
        registrations: Iterable[Registration],
        listen: ListenSettings,
        tracer: Tracer | None = None,
        limits: LimitSettings | None = None,
    ) -> None:
        """Build it; nothing is opened yet. Raises TypeError for a servicer of a wrong shape."""
        host = listen.address.host
        self._host = f"[{host}]" if ":" in host else host
        self.port = listen.address.port
        super().__init__(
            registrations, f"{self._host}:{self.port}", tracer, limits or LimitSettings()
        )
        self._files = listen.tls

    def _listen(self, server: aio.Server) -> None:
        certificates = Certificates(self._files)
        credentials = grpc.dynamic_ssl_server_credentials(
            certificates.current(), certificates.changed, require_client_authentication=True
        )
        try:
            self.port = server.add_secure_port(self.address, credentials)
        except RuntimeError as error:
            raise ConfigError(f"listen {self.address}: cannot listen there: {error}") from error
        self.address = f"{self._host}:{self.port}"


class Certificates:
    """The files of a listener, read again when they change, for connections from then on.

    gRPC asks at every handshake, from threads of its own.
    """

    def __init__(self, files: TlsFiles) -> None:
        """Read them. Raises ConfigError naming a file that cannot be read or holds no PEM."""
        self._files = (files.key, files.certificate, files.client_authority)
        self._lock = Lock()
        self._stamps = self._stamped()
        self._configuration = self._read()

    def current(self) -> Any:
        """The configuration as it was read last."""
        return self._configuration

    def changed(self) -> Any:
        """The configuration, if the files are others than before; None if they are not.

        What is wrong with new files is logged once, and the old ones stay in use.
        """
        with self._lock:
            try:
                stamps = self._stamped()
                if stamps == self._stamps:
                    return None
                self._stamps = stamps
                self._configuration = self._read()
            except ConfigError as error:
                _log.error("certificates stay as they were", error=str(error))
                return None
            return self._configuration

    def _stamped(self) -> tuple[tuple[int, int, int], ...]:
        stamps = []
        for path in self._files:
            try:
                status = path.stat()
            except OSError as error:
                raise _unreadable(path, error) from error
            stamps.append((status.st_mtime_ns, status.st_ino, status.st_size))
        return tuple(stamps)

    def _read(self) -> Any:
        key, chain, authority = map(_pem, self._files)
        return grpc.ssl_server_certificate_configuration([(key, chain)], authority)


def _pem(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    if b"-----BEGIN " not in data:
        raise ConfigError(f"numalign.listen: {path}: holds no PEM")
    return data


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"numalign.listen: {path}: {error.strerror}")
