"""What a container sees and can do, asked from inside: `python - ports|greet|listening|privileges ... < probe.py`.

It uses nothing but the standard library and the network and rights of the container that it runs in, and prints one
JSON object.
"""

import errno
import json
import os
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_SECONDS = 3.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_STATUS = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
_PLACES = ("/", "/etc", "/usr", "/opt/veiltab", "/etc/veiltab", "/etc/veiltab/identity", "/sys", "/proc/sys")
_STORES = ("/srv/veiltab", "/tmp", "/var/lib/veiltab")  # noqa: S108 - a file system of its own


def ports(targets: Sequence[str]) -> dict[str, str]:
    """Try to connect to each "host:port"; return "open" or why not."""
    # All at once: a packet that is dropped costs the whole patience.
    with ThreadPoolExecutor(len(targets)) as pool:
        return dict(zip(targets, pool.map(lambda target: _port(*_split(target)), targets), strict=True))


def greet(identity: str, targets: Sequence[str]) -> dict[str, str]:
    """Speak HTTP/2 over TLS to each "host:port"; return "answers" or why not.

    Args:
        identity: folder of a party's certificate and key, or "none" to show no certificate.
        targets: whom to greet.
    """
    context = ssl.create_default_context()
    # The question is who is let in; who answers does not matter here.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if identity != "none":
        (key,) = Path(identity).glob("*.key")
        context.load_cert_chain(key.with_suffix(".pem"), key)
    return {target: _greeting(context, *_split(target)) for target in targets}


def listening() -> dict[str, list[int]]:
    """Return the TCP ports at which anything in the container listens, as the kernel lists them.

    The engine's resolver, at 127.0.0.11, is none of the party's.
    """
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        if (path := Path(f"/proc/net/{name}")).exists()
        for line in path.read_text("ascii").splitlines()[1:]
    ]
    return {"ports": [int(words[1][-4:], 16) for words in lines if words[3] == "0A" and words[1][:8] != "0B00007F"]}


def privileges() -> dict[str, object]:
    """Return the rights of the container's first process, where it can write, and its limits."""
    lines = Path("/proc/1/status").read_text("ascii").splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines) if name in _STATUS}
    return {
        "status": status,
        "read_only": bool(os.statvfs("/").f_flag & os.ST_RDONLY),
        "writable": [place for place in (*_PLACES, *_STORES) if _writable(Path(place))],
        "memory": _limit("memory/memory.limit_in_bytes", "memory.max"),
        "pids": _limit("pids/pids.max", "pids.max"),
        "identity": sorted(path.name for path in Path("/etc/veiltab/identity").iterdir()),
    }


def _port(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except OSError as error:
        return _reason(error)
    return "open"


def _greeting(context: ssl.SSLContext, host: str, port: int) -> str:
    try:
        with (
            socket.create_connection((host, port), timeout=_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            # With TLS 1.3 a refused certificate shows at the first read, not in the handshake.
            connection.sendall(_PREFACE)
            return "answers" if connection.recv(9) else "closed"
    except ssl.SSLError as error:
        return f"TLS: {error.reason}"
    except OSError as error:
        return _reason(error)


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "no such name"
    if isinstance(error, TimeoutError):
        return "no answer"
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _split(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    return host, int(port)


def _writable(folder: Path) -> bool:
    try:
        probe = folder / ".veiltab-probe"
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _limit(*names: str) -> int | None:
    """Return a limit of the container's control group, in whichever version it is there."""
    for name in names:
        path = Path("/sys/fs/cgroup") / name
        if path.exists():
            text = path.read_text("ascii").strip()
            return int(text) if text.isdigit() else None
    return None


def main(arguments: Sequence[str]) -> None:
    """Ask what the command line asks."""
    what, *rest = arguments
    match what:
        case "ports":
            answer: Mapping[str, object] = ports(rest)
        case "greet":
            answer = greet(rest[0], rest[1:])
        case "listening":
            answer = listening()
        case "privileges":
            answer = privileges()
        case _:
            raise ValueError(what)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
