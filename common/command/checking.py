"""`serve --check`: what a start needs that is to leave nothing, and what it says at its end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from shutil import rmtree

from veiltab.common.command.cli import emit
from veiltab.common.rpc.parties.identity import Identity, utc_now
from veiltab.common.storage.files import make_private

_SOON_DAYS = 30


@contextmanager
def tried_folder(path: Path) -> Iterator[Path]:
    """Give a new folder for a block, on the disk on which another is to be made.

    Raises:
        InvalidInputError: none can be made there.
    """
    above = next(one for one in path.absolute().parents if one.exists())
    make_private(tried := above / f".{path.name}-{token_hex(8)}")
    try:
        yield tried
    finally:
        rmtree(tried)


def say_ready(identity: Identity, address: str) -> None:
    """Print that a party can serve, and how long its certificate is valid."""
    party, days = identity.party, (identity.certificate_facts.not_after - utc_now()).days
    renew = f"; renew it with `veiltab pki issue --party {party.role.value}/{party.name}`" if days < _SOON_DAYS else ""
    data = {"ok": True, "party": party.uri, "listen": address, "certificate_days": days}
    emit(data, f"{party} can serve at {address}. Its certificate is valid for {days} days{renew}.")
