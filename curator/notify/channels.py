"""How a notice leaves: posted to a web address, given to a command, or by e-mail. Each sends once, or says why not.

Every sending is a process of its own, ended with all that it started once it takes too long: what a server or a command
does costs the curator neither memory nor a thread for longer than `SECONDS`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from veiltab.common.errors import UnavailableError
from veiltab.curator.notify import sending
from veiltab.curator.notify.outbox import Notice
from veiltab.curator.officer.notify_settings import MailSettings, NotifySettings

SECONDS: float = sending.SECONDS
"""How long a channel may take."""

_SENDER = (sys.executable, "-P", "-m", "veiltab.curator.notify.sending")

Send = Callable[[Notice], None]
"""Sends a notice; raises UnavailableError if the channel does not take it."""


def channels_of(settings: NotifySettings) -> Mapping[str, Send]:
    """Return name -> how it sends, of each channel."""
    channels: dict[str, Send] = {}
    if settings.webhook:
        channels["webhook"] = partial(_send, "webhook", settings.webhook, settings.authority)
    if settings.command:
        channels["command"] = partial(_run, settings.command)
    if settings.mail is not None:
        channels["email"] = partial(_send, "email", settings.mail, settings.authority)
    return channels


def _send(channel: str, how: MailSettings | str, authority: Path | None, notice: Notice) -> None:
    """Post or mail a notice."""
    _end_well(channel, _SENDER, sending.task_of(notice, how, authority), output=subprocess.PIPE)


def _run(command: tuple[str, ...], notice: Notice) -> None:
    """Run a command without a shell, with a notice as JSON on its standard input; its exit code must be 0."""
    _end_well("command", command, sending.json_of(notice), output=subprocess.DEVNULL)


def _end_well(channel: str, command: tuple[str, ...], text: bytes, *, output: int) -> None:
    """Run a process that gets a text on standard input.

    Raises:
        UnavailableError: it takes too long, or its exit code is not 0; with its output as the reason, if it is read.
    """
    with sending.refusals(channel):
        process = subprocess.Popen(  # noqa: S603 - the product's own command, or the operator's
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True
        )
        with process:
            try:
                problem, _ = process.communicate(text, timeout=SECONDS)
            except BaseException:
                # Nobody has waited for the process yet, so its group is still there.
                os.killpg(process.pid, signal.SIGKILL)
                raise
    if process.returncode:
        why = problem.decode(errors="replace") if problem else f"it ends with exit code {process.returncode}"
        raise UnavailableError(why, where=channel)
