"""Addresses to listen at, tried before they are used, so that a refusal says what is wrong."""

import socket

from veiltab.common.errors import InvalidInputError


def check_bindable(address: str) -> None:
    """Refuse an address that is malformed or cannot be bound now.

    Args:
        address: host:port; port 0 is any that is free.

    Raises:
        InvalidInputError: it is none, or another process has it.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidInputError(f"{address[:100]!r} is not HOST:PORT", remedy="Such as 0.0.0.0:7400.")
    try:
        places = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise InvalidInputError(
            f"the host of {address[:100]!r} is not known here", remedy="Give an address of this machine."
        ) from None
    # A machine without IPv6 listens on IPv4 instead.
    if host == "[::]":
        places += socket.getaddrinfo("0.0.0.0", int(port), type=socket.SOCK_STREAM)  # noqa: S104 - as gRPC does
    if not any(_binds(family, place) for family, _, _, _, place in places):
        raise InvalidInputError(
            "this address cannot be bound; another process may have the port",
            where=address,
            remedy="Stop the other process, or give another address with --listen.",
        )


def loopback_address(text: str, where: str) -> tuple[str, int]:
    """Return the host and port of PORT or HOST:PORT; without a host it is the loopback interface.

    Raises:
        InvalidInputError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    name = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    if not name or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidInputError(
            f"{text[:100]!r} is not PORT or HOST:PORT", where=where, remedy="Such as 127.0.0.1:9464."
        )
    return name, int(port)


def _binds(family: int, place: object) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)  # type: ignore[arg-type] # as getaddrinfo gives it
        except OSError:
            return False
    return True
