"""Sends one notice by webhook or e-mail, in a process of its own that may take neither long nor much memory.

A mail or web server, or anyone who stands in front of it, can answer without end. The task comes as one JSON object on
standard input. The exit code is 0 once the server has taken the notice; else standard output says why it has not.
"""

import http.client
import json
import signal
import smtplib
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from email.message import EmailMessage
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from veiltab.common.errors import UnavailableError
from veiltab.common.process.protection import limit_memory
from veiltab.curator.notify.outbox import Notice
from veiltab.curator.officer.notify_settings import Kind, MailSettings, Security

SECONDS = 20
"""How long the sending of a notice may take, from its first byte to its last."""

_MOST_MEMORY = 2**29


def task_of(notice: Notice, channel: MailSettings | str, authority: Path | None) -> bytes:
    """Return what `main` reads.

    Args:
        notice: what is sent.
        channel: how it is mailed, or the URL that it is posted to.
        authority: file with the certificates that the server's is checked against; None for the system's.
    """
    how = {"url": channel} if isinstance(channel, str) else {"mail": asdict(channel)}
    return json.dumps({"notice": asdict(notice), "authority": authority, **how}, default=_plain).encode()


def main() -> None:
    """Do the task on standard input."""
    limit_memory(_MOST_MEMORY)
    # The curator ends this process in time; the alarm does so if there is no curator any more.
    signal.alarm(SECONDS)
    task = json.load(sys.stdin)
    notice = Notice(**{**task["notice"], "kind": Kind(task["notice"]["kind"])})
    authority = _path(task["authority"])
    try:
        if "url" in task:
            post(task["url"], authority, notice)
        else:
            mail(_mail_settings(task["mail"]), authority, notice)
    except UnavailableError as error:
        sys.stdout.write(error.problem)
        sys.exit(UnavailableError.exit_code)


def post(url: str, authority: Path | None, notice: Notice) -> None:
    """Post a notice as JSON; only an answer of 200 to 299 counts, and no redirection is followed.

    Raises:
        UnavailableError: as the channel does not take it.
    """
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with refusals("webhook"):
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=authority)
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname or "", parts.port, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        try:
            connection.request("POST", target, body=json_of(notice), headers={"Content-Type": "application/json"})
            status = connection.getresponse().status
        finally:
            connection.close()
    if not 200 <= status < 300:
        raise UnavailableError(f"it answers {status}", where="webhook")


def mail(settings: MailSettings, authority: Path | None, notice: Notice) -> None:
    """Send a notice by e-mail.

    Raises:
        UnavailableError: as the mail server does not take it.
    """
    with refusals("email"), _connected(settings, authority) as server:
        if settings.password_file is not None:
            server.login(settings.user, settings.password_file.read_text("utf-8").strip())
        if refused := server.send_message(message_of(settings, notice)):
            raise UnavailableError(f"the mail server refuses {len(refused)} of the addresses", where="email")


def message_of(settings: MailSettings, notice: Notice) -> EmailMessage:
    """Return the e-mail of a notice; anyone who gets one twice sees by its Message-ID that it is the same."""
    facts = notice.facts
    about = f"curator {facts['curator']}, study {facts['study']}"
    message = EmailMessage()
    message["From"] = settings.sender
    message["To"] = ", ".join(settings.recipients)
    message["Subject"] = f"veiltab: {about}: {facts['text']}"
    message["Date"] = datetime.fromtimestamp(notice.created, UTC)
    name = f"{facts['study']}.{facts['curator']}.{notice.kind.value}.{notice.number}.{notice.created}"
    message["Message-ID"] = f"<{name}@{settings.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    lines = [f"{name}: {value}" for name, value in facts.items() if name not in {"text", "look"}]
    message.set_content("\n".join([f"{facts['text']}.", "", *lines, "", f"Look: {facts['look']}", ""]))
    return message


@contextmanager
def refusals(channel: str) -> Iterator[None]:
    """Turn what goes wrong on the way into a refusal that says its kind, and nothing that a server said."""
    try:
        yield
    except smtplib.SMTPResponseException as error:
        raise UnavailableError(f"the mail server answers {error.smtp_code}", where=channel) from None
    except (OSError, http.client.HTTPException, subprocess.SubprocessError, ValueError, MemoryError) as error:
        why = getattr(error, "strerror", None)
        raise UnavailableError(f"{type(error).__name__}{f': {why}' if why else ''}", where=channel) from None


def json_of(notice: Notice) -> bytes:
    """Return a notice as webhooks and commands get it."""
    return (json.dumps({"number": notice.number, **notice.facts}) + "\n").encode()


@contextmanager
def _connected(settings: MailSettings, authority: Path | None) -> Iterator[smtplib.SMTP]:
    place = (settings.host, settings.port)
    match settings.security:
        case Security.TLS:
            with smtplib.SMTP_SSL(*place, context=ssl.create_default_context(cafile=authority)) as own:
                yield own
        case Security.STARTTLS:
            with smtplib.SMTP(*place) as own:
                own.starttls(context=ssl.create_default_context(cafile=authority))
                yield own
        case Security.NONE:
            with smtplib.SMTP(*place) as own:
                yield own


def _plain(value: object) -> str:
    match value:
        case Enum():
            return str(value.value)
        case Path():
            return str(value)
        case _:
            raise TypeError(f"a task has no {type(value).__name__}")


def _mail_settings(plain: dict[str, Any]) -> MailSettings:
    return MailSettings(
        **{
            **plain,
            "recipients": tuple(plain["recipients"]),
            "security": Security(plain["security"]),
            "password_file": _path(plain["password_file"]),
        }
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


if __name__ == "__main__":
    main()
