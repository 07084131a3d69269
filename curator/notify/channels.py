"""How a notice leaves: posted to a web address, given to a command, or by e-mail. Each sends once, or says why not."""

import http.client
import json
import smtplib
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from veiltab.common.errors import UnavailableError
from veiltab.curator.notify.outbox import Notice
from veiltab.curator.notify.settings import MailSettings, NotifySettings, Security

SECONDS = 20.0
"""How long a server or a command may take to answer."""

Send = Callable[[Notice], None]
"""Sends a notice; raises UnavailableError if the channel does not take it."""


def channels_of(settings: NotifySettings) -> Mapping[str, Send]:
    """Return name -> how it sends, of each channel."""
    channels: dict[str, Send] = {}
    if settings.webhook:
        channels["webhook"] = partial(post, settings.webhook, settings.authority)
    if settings.command:
        channels["command"] = partial(run, settings.command)
    if settings.mail is not None:
        channels["email"] = partial(mail, settings.mail, settings.authority)
    return channels


def post(url: str, authority: Path | None, notice: Notice) -> None:
    """Post a notice as JSON; only an answer of 200 to 299 counts, and no redirection is followed.

    Raises:
        UnavailableError: as the channel does not take it.
    """
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with _refusals("webhook"):
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=authority)
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)
        try:
            connection.request("POST", target, body=_json(notice), headers={"Content-Type": "application/json"})
            status = connection.getresponse().status
        finally:
            connection.close()
    if not 200 <= status < 300:
        raise UnavailableError(f"it answers {status}", where="webhook")


def run(command: tuple[str, ...], notice: Notice) -> None:
    """Run a command without a shell, with a notice as JSON on its standard input; its exit code must be 0.

    Raises:
        UnavailableError: as the command does not take it.
    """
    with _refusals("command"):
        ended = subprocess.run(  # noqa: S603 - the operator's own command
            command,
            input=_json(notice),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
            start_new_session=True,
        )
    if ended.returncode:
        raise UnavailableError(f"it ends with exit code {ended.returncode}", where="command")


def mail(settings: MailSettings, authority: Path | None, notice: Notice) -> None:
    """Send a notice by e-mail.

    Raises:
        UnavailableError: as the mail server does not take it.
    """
    with _refusals("email"), _connected(settings, authority) as server:
        if settings.password_file is not None:
            server.login(settings.user, settings.password_file.read_text("utf-8").strip())
        if refused := server.send_message(message_of(settings, notice)):
            raise UnavailableError(f"the mail server refuses {len(refused)} of the addresses", where="email")


def message_of(settings: MailSettings, notice: Notice) -> EmailMessage:
    """Return the e-mail of a notice; whoever gets one twice sees by its Message-ID that it is the same."""
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
def _connected(settings: MailSettings, authority: Path | None) -> Iterator[smtplib.SMTP]:
    place = (settings.host, settings.port)
    match settings.security:
        case Security.TLS:
            with smtplib.SMTP_SSL(*place, timeout=SECONDS, context=ssl.create_default_context(cafile=authority)) as own:
                yield own
        case Security.STARTTLS:
            with smtplib.SMTP(*place, timeout=SECONDS) as own:
                own.starttls(context=ssl.create_default_context(cafile=authority))
                yield own
        case Security.NONE:
            with smtplib.SMTP(*place, timeout=SECONDS) as own:
                yield own


@contextmanager
def _refusals(channel: str) -> Iterator[None]:
    """Turn what goes wrong on the way into a refusal that says its kind, and nothing that a server said."""
    try:
        yield
    except smtplib.SMTPResponseException as error:
        raise UnavailableError(f"the mail server answers {error.smtp_code}", where=channel) from None
    except (OSError, http.client.HTTPException, subprocess.SubprocessError, ValueError) as error:
        why = getattr(error, "strerror", None)
        raise UnavailableError(f"{type(error).__name__}{f': {why}' if why else ''}", where=channel) from None


def _json(notice: Notice) -> bytes:
    return (json.dumps({"number": notice.number, **notice.facts}) + "\n").encode()
