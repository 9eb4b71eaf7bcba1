"""Certificates for tests, made by the openssl command."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from numalign.config.settings import TlsFiles

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Authority:
    """A certificate authority whose files are in `directory`."""

    directory: Path

    @property
    def certificate(self) -> Path:
        return self.directory / "ca.crt"

    def issue(self, name: str) -> tuple[Path, Path]:
        """A certificate for localhost under a file name, and its key."""
        request, key = self.directory / f"{name}.csr", self.directory / f"{name}.key"
        certificate = self.directory / f"{name}.crt"
        extension = self.directory / "extension"
        extension.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _openssl("req", *_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        _openssl(
            *("x509", "-req", "-in", request, "-out", certificate, "-days", "2"),
            *("-CA", self.certificate, "-CAkey", self.directory / "ca.key", "-CAcreateserial"),
            *("-extfile", extension),
        )
        return certificate, key

    def files(self, name: str) -> TlsFiles:
        """What a listener needs that has a certificate of this authority and trusts it."""
        certificate, key = self.issue(name)
        return TlsFiles(certificate=certificate, key=key, client_authority=self.certificate)


def make_authority(directory: Path) -> Authority:
    """A new authority, in a directory that is made for it."""
    directory.mkdir()
    authority = Authority(directory)
    _openssl(
        *("req", "-x509", *_KEY, "-days", "2", "-subj", "/CN=tests"),
        *("-keyout", directory / "ca.key", "-out", authority.certificate),
    )
    return authority


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
