"""What kubectl says, in words that name the way out."""

from __future__ import annotations

import pytest

from numalign.cli.remote.failures import is_not_found, plain_failure, what_was_said

AWAY = "the API server cannot be reached: "


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        pytest.param(
            "The connection to the server localhost:8080 was refused - did you specify the right "
            "host or port?",
            "no kubeconfig: kubectl has no cluster to speak to; KUBECONFIG names the file, or it "
            "is ~/.kube/config",
            id="no kubeconfig",
        ),
        pytest.param(
            'error: context "prod" does not exist',
            'context "prod" does not exist: `kubectl config get-contexts` shows those there are',
            id="no such context",
        ),
        pytest.param(
            'error: error loading config file "/k": yaml: line 3: mapping values',
            'the kubeconfig cannot be used: error loading config file "/k": yaml: line 3: mapping '
            "values",
            id="damaged kubeconfig",
        ),
        pytest.param(
            'Error from server (Forbidden): pods is forbidden: User "u" cannot list '
            'resource "pods"',
            'not allowed: Error from server (Forbidden): pods is forbidden: User "u" cannot list '
            'resource "pods" (--node needs: get and list pods, create pods/exec)',
            id="no right",
        ),
        pytest.param(
            "error: You must be logged in to the server (Unauthorized)",
            "the API server does not accept the credentials of the kubeconfig: You must be logged "
            "in to the server (Unauthorized)",
            id="wrong credentials",
        ),
        pytest.param(
            "Unable to connect to the server: dial tcp: lookup api.example on 10.0.0.1:53: no such "
            "host",
            f"{AWAY}Unable to connect to the server: dial tcp: lookup api.example on 10.0.0.1:53: "
            "no such host",
            id="no such host",
        ),
        pytest.param(
            "Unable to connect to the server: context deadline exceeded",
            f"{AWAY}Unable to connect to the server: context deadline exceeded",
            id="too late",
        ),
        pytest.param(
            "Usage: numalign\n\nError: No such command 'relay'.\n"
            "command terminated with exit code 2",
            "numalign on the node is too old for --node: it has no command relay",
            id="an older numalign",
        ),
        pytest.param(
            'E1201 10:00:00.000000 1 v3.go:79] "Unhandled Error"\n'
            'error: Internal error occurred: exec: "numalign": executable file not found in $PATH',
            "numalign cannot be run in the container: Internal error occurred: exec: "
            '"numalign": executable file not found in $PATH',
            id="no numalign there",
        ),
        pytest.param(
            "numalign: /etc/n.yaml: cannot be read: Permission denied\n"
            "command terminated with exit code 1",
            "numalign: /etc/n.yaml: cannot be read: Permission denied",
            id="anything else is told as it is",
        ),
        pytest.param(
            "command terminated with exit code 137",
            "command terminated with exit code 137",
            id="nothing but noise",
        ),
        pytest.param("", "kubectl ended without a word", id="nothing"),
    ],
)
def test_plain(stderr: str, said: str) -> None:
    assert plain_failure(stderr) == said


def test_what_the_command_said() -> None:
    stderr = "Defaulted container x out of: x, y\n\nnumalign: one\nnumalign: two\n"

    assert what_was_said(stderr) == ["numalign: one", "numalign: two"]


def test_not_found() -> None:
    assert is_not_found('Error from server (NotFound): nodes "x" not found')
    assert not is_not_found("Error from server (Forbidden): nodes is forbidden")
