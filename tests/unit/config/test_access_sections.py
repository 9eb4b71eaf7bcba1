"""The sections that say who may call and how much: sockets, limits, listen, directories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numalign.config.settings import Settings
from numalign.document.problems import DocumentError

Read = Callable[[str], Settings]

TLS = "tls: {cert: a, key: b, clientCA: c}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "sockets: {allow: {uids: [true]}}",
            "numalign.sockets.allow.uids[0]: must be a name or a number, not true",
            id="a uid that is none",
        ),
        pytest.param(
            "sockets: {allow: {gids: 5}}",
            "numalign.sockets.allow.gids: must be a list, not 5",
            id="no list",
        ),
        pytest.param(
            "sockets: {allow: {users: []}}",
            "numalign.sockets.allow.users: unknown key",
            id="unknown list",
        ),
        pytest.param(
            'sockets: {mode: "0666", allow: {uids: [5]}}',
            "numalign.sockets.allow: has no meaning with mode 0666, which lets every user connect",
            id="everybody and somebody",
        ),
        pytest.param(
            "limits: {calls: 0}", "numalign.limits.calls: must be at least 1, not 0", id="no calls"
        ),
        pytest.param(
            "limits: {callTimeout: 0s}",
            'numalign.limits.callTimeout: must be longer than 0, not "0s"',
            id="no time",
        ),
        pytest.param(
            'listen: [{address: "0.0.0.0:7443", tls: {cert: a, key: b}}]',
            "numalign.listen[0].tls.clientCA: must be given",
            id="no client certificates",
        ),
        pytest.param(
            'listen: [{address: "0.0.0.0:7443"}]',
            "numalign.listen[0].tls.cert: must be given",
            id="no TLS",
        ),
        pytest.param(
            f"listen: [{{{TLS}}}]", "numalign.listen[0].address: must be given", id="no address"
        ),
        pytest.param(
            f'listen: [{{address: "a:1", {TLS}}}, {{address: "a:1", {TLS}}}]',
            "numalign.listen[1].address: is given twice",
            id="one address twice",
        ),
        pytest.param(
            "providerDirectories: [run/a]",
            'numalign.providerDirectories[0]: must be an absolute path, not "run/a"',
            id="relative directory",
        ),
        pytest.param(
            "hostRoot: host",
            'numalign.hostRoot: must be an absolute path, not "host"',
            id="relative root",
        ),
        pytest.param(
            'kubeletConfigz: {url: "file:///etc/passwd"}',
            'numalign.kubeletConfigz.url: must be an http or https URL, not "file:///etc/passwd"',
            id="a file as an URL",
        ),
        pytest.param(
            'kubeletConfigz: {url: "http://127.0.0.1/configz", tokenFile: t}',
            "numalign.kubeletConfigz.tokenFile: goes with an https URL only",
            id="a token in the clear",
        ),
        pytest.param(
            "kubeletConfigz: {}", "numalign.kubeletConfigz.url: must be given", id="no URL"
        ),
        pytest.param(
            "secondOwner: fight",
            'numalign.secondOwner: must be one of "refuse", "tolerate", not "fight"',
            id="unknown choice",
        ),
    ],
)
def test_what_is_refused(settings: Read, text: str, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        settings(f"numalign:\n  {text}\n")

    assert problem in caught.value.problems
