"""Runs a console on the loopback interface, in the main thread of its command, until a signal stops it."""

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager

import uvicorn

from veiltab.common.command.cli import note
from veiltab.common.errors import InvalidInputError
from veiltab.common.process.logs import log_to_stderr
from veiltab.common.web.application import ConsoleApplication
from veiltab.common.web.links import LinkFolder, check_persons, print_links
from veiltab.common.web.pages import Console

LOOPBACK = "127.0.0.1"
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_console(
    console: Console, persons: Mapping[str, bool], *, port: int, as_json: bool, folder: LinkFolder
) -> None:
    """Serve a console, and print a one-time link for each person.

    Args:
        persons: who may enter -> whether to decide, or only to read.
        port: of the loopback interface; 0 takes a free one.
        as_json: whether the links are printed as one JSON object.
        folder: where a command leaves links while the console runs.

    Raises:
        InvalidInputError: no person, one twice or without a name, or a port that is not free.
    """
    check_persons(list(persons))
    log_to_stderr()
    with ExitStack() as stack:
        listener = stack.enter_context(closing(_bound(port)))
        host = f"{LOOPBACK}:{listener.getsockname()[1]}"
        application = ConsoleApplication(console, host, links=folder)
        stack.enter_context(folder.opened(host))
        links = {person: application.new_link(person, decides=decides) for person, decides in persons.items()}
        print_links(links, as_json=as_json)
        note("Ctrl-C ends the console.")
        _Server(
            uvicorn.Config(
                application,
                http="h11",
                loop="asyncio",
                ws="none",
                log_config=None,
                log_level=logging.ERROR,  # what a client sends wrong is answered, not logged
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=3,
            )
        ).run([listener])


class _Server(uvicorn.Server):
    """The server, which ends with its command instead of raising the signal again, and when its terminal closes."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let the signals that end a command end the server in order."""
        loop = asyncio.get_running_loop()
        for number in _ENDS:
            loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in _ENDS:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self.should_exit = True


def _bound(port: int) -> socket.socket:
    """Return a socket that listens on the loopback interface: a link may be opened as soon as it is printed."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidInputError(
            f"the console cannot listen at port {port} ({error.strerror})", where="--port", remedy="Leave it out."
        ) from None
    return listener
