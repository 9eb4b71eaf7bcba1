"""The front of a run: what the user started. It is there for signals and for the exit code."""

from __future__ import annotations

import json
import os
import signal
import socket
from typing import Any

from numalign.cli.failure import say
from numalign_agent.run.command import FAILED, Command, NotExecuted, Start
from numalign_agent.run.holder import Holder
from numalign_agent.run.keeping import Options, fork_keeper
from numalign_agent.run.pod import Asked
from numalign_agent.run.tree import here

_PASSED_ON = frozenset(
    {
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGWINCH,
    }
)
_WAITED_FOR = _PASSED_ON | {signal.SIGCHLD}


def run(asked: Asked, options: Options) -> int:
    """Run a command as a pod; the exit code. To be called in a process without threads.

    125 where it was not admitted or could not be placed, 126 and 127 where it could not be
    executed, else that of the command, 128 and the signal's number if it was ended by one.
    """
    # Whoever interrupts a run before its command is there ends the front, and so all of it. Where
    # it was started with interrupts ignored, as in the background, the command ignores them too.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = Command.fork(asked.command)
    holder = Holder(here(), command.pid, command.start)
    keeper, link = fork_keeper(asked, options, command, holder)
    answer = _answer(link)
    if "start" not in answer:
        command.give_up()
        say(answer["refused"])
        code = FAILED
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
        failure = command.begin(Start(**answer["start"]))
        code = _told(failure) if failure is not None else _until_ended(command)
    link.close()
    _, status = os.waitpid(keeper, 0)
    # A keeper that has said why the pod is not released does not change how the command ended.
    if os.WIFSIGNALED(status):
        say(["the keeper was killed; the next run releases what is left"])
    return code


def _answer(link: socket.socket) -> dict[str, Any]:
    with link.makefile("r", encoding="utf-8") as lines:
        line = lines.readline()
    if not line:
        return {"refused": ["the keeper ended before the pod was admitted"]}
    answer: dict[str, Any] = json.loads(line)
    return answer


def _told(failure: NotExecuted) -> int:
    say([failure.message])
    return failure.code


def _until_ended(command: Command) -> int:
    """Wait for the command; signals that somebody sends to the front are passed on.

    What comes from the terminal has reached the command already.
    """
    while (code := command.ended()) is None:
        info = signal.sigwaitinfo(_WAITED_FOR)
        if info.si_signo in _PASSED_ON and info.si_code <= 0:
            os.kill(command.pid, info.si_signo)
    return code
