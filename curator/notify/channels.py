"""How a notice leaves: by the library apprise, to the URLs of a private file. URLs hold passwords: none is ever shown.

Every sending is a process of its own (`main`), ended once it takes too long: what a server does costs the curator
neither memory nor more time than `SECONDS`.
"""

import asyncio
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.extras import importing
from veiltab.common.process.protection import limit_memory
from veiltab.common.study.file import read_file
from veiltab.common.study.toml_text import parsed_toml_text
from veiltab.curator.officer.notify_settings import NotifySettings

if TYPE_CHECKING:
    from apprise import Apprise

SECONDS = 20
"""How long the sending of a notice may take, from its first byte to its last."""

_MOST_MEMORY = 2**29
_SENDER = (sys.executable, "-P", "-m", "veiltab.curator.notify.channels")

_LOCAL = {"localhost", "127.0.0.1", "[::1]", "::1"}
_WITHOUT_TLS = {"mailto", "json"}
_SCHEMES = {"mailtos", "jsons", "slack", "workflows", "mmosts", "ntfys", *_WITHOUT_TLS}
"""Others run commands, write files or show windows, or send without TLS."""
_PARAMETERS = {"to", "cc", "bcc", "reply", "from", "name", "smtp", "mode", ""}
"""Others read files, leave certificates unchecked or follow redirections; a name with a plus adds a header."""
_NAME = re.compile(r"[a-z0-9_-]{1,30}")


def channels_of(settings: NotifySettings) -> Mapping[str, str]:
    """Return name -> URL of each channel.

    Raises:
        InvalidInputError: the file cannot be read, or others may; a channel is none that notices may go by.
    """
    path = settings.channels
    channels = parsed_toml_text(read_file(path, "file of channels", is_own=True), str(path))
    if path.stat().st_mode & 0o077:
        raise InvalidInputError("others than the owner may read it", where=str(path), remedy=f"Run: chmod 600 {path}")
    urls = {name: url for name, url in channels.items() if _NAME.fullmatch(name) and isinstance(url, str)}
    if not urls or len(urls) < len(channels):
        remedy = "A name has up to 30 small letters, digits, _ and -; give its URL in quotes."
        raise InvalidInputError('every line must be: name = "URL"', where=str(path), remedy=remedy)
    for name, url in urls.items():
        service_of(url, f"{path}: {name}")
    return urls


def service_of(url: str, where: str) -> "Apprise":
    """Return what sends to one URL; `where` names the channel in a refusal.

    Raises:
        InvalidInputError: apprise is not installed, or notices may not go by this URL.
    """
    with importing("notify", "sending notices", where="[notify]"):
        from apprise import Apprise, AppriseAsset, PersistentStoreMode  # noqa: PLC0415 - not where the extra is missing
    logging.getLogger("apprise").disabled = True  # it quotes URLs
    scheme, _, rest = url.partition("://")
    if scheme not in _SCHEMES:
        raise InvalidInputError(
            "the URL has another scheme", where=where, remedy=f"Take: {', '.join(sorted(_SCHEMES))}."
        )
    names = {one.partition("=")[0] for one in re.split("[?&;]", rest)[1:]}
    if any(name not in _PARAMETERS and name[0] != "+" for name in names):
        allowed = ", ".join(sorted(_PARAMETERS - {""}))
        raise InvalidInputError("the URL has other parameters", where=where, remedy=f"Take: {allowed}, +HEADER.")
    asset = AppriseAsset(
        allow_templates=False,
        async_mode=False,
        http_redirects=False,
        pem_autogen=False,
        pgp_autogen=False,
        storage_mode=PersistentStoreMode.MEMORY,
    )
    service = Apprise.instantiate(url, asset=asset)
    if service is None or isinstance(service, dict):
        remedy = "https://appriseit.com/services has the form of each."
        raise InvalidInputError("the URL is malformed", where=where, remedy=remedy)
    is_open = getattr(service, "secure_mode", "") == "insecure" or scheme in _WITHOUT_TLS
    if is_open and (getattr(service, "smtp_host", "") or service.host) not in _LOCAL:
        remedy = "Take mailtos or jsons: only this machine is told without TLS."
        raise InvalidInputError("the URL is one without TLS to another machine", where=where, remedy=remedy)
    sender = Apprise(asset=asset)
    sender.add(service)
    return sender


async def send(channel: str, url: str, authority: Path | None, title: str, body: str) -> None:
    """Send a notice by a channel.

    Raises:
        UnavailableError: the channel does not take it.
    """
    trusted = dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), str(authority)) if authority else {}
    process = await asyncio.create_subprocess_exec(
        *_SENDER, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={**os.environ, **trusted}
    )
    try:
        async with asyncio.timeout(SECONDS):
            answer, _ = await process.communicate(json.dumps([url, title, body]).encode())
    except TimeoutError:
        raise UnavailableError(f"it takes longer than {SECONDS} s", where=channel) from None
    finally:
        with suppress(ProcessLookupError):  # it has ended
            process.kill()
        await process.communicate()
    if process.returncode:
        raise UnavailableError(answer.decode() or "it does not take the notice", where=channel)


def main() -> None:
    """Send the notice on standard input; if the server does not take it, say its status and nothing else."""
    limit_memory(_MOST_MEMORY)
    # The curator ends this process in time; the alarm does so if there is no curator any more.
    signal.alarm(SECONDS)
    url, title, body = json.load(sys.stdin)
    sender = service_of(url, "channel")
    from apprise import LogCapture, NotifyFormat  # noqa: PLC0415 - not where the extra is missing

    logging.getLogger("apprise").disabled = False
    with LogCapture(level=logging.WARNING) as log:  # type: ignore[no-untyped-call]
        is_sent = sender.notify(body=body, title=title, body_format=NotifyFormat.TEXT)
        status = re.search(r"\berror=(\d{3})\b", log.getvalue())
    if not is_sent:
        sys.stdout.write(f"it answers {status[1]}" if status else "it cannot be reached, or refuses")
        sys.exit(UnavailableError.exit_code)


if __name__ == "__main__":
    main()
