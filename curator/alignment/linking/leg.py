"""One curator's side of a linkage in one session: its files, its messages, and what is fetched."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.row_keys import most_variants
from veiltab.common.observe.steps import step as measured_step
from veiltab.common.storage.disk import Room
from veiltab.common.storage.files import written_whole
from veiltab.curator.alignment.disk_needs import FOLDERS, ROW_BYTES
from veiltab.curator.alignment.intersection import SymbolType
from veiltab.curator.alignment.linking.link_messages import LinkMessage, Session
from veiltab.curator.alignment.linking.oblivious import VALUE_BYTES, direct_values, token_values
from veiltab.curator.alignment.linking.own_keys import RECORD_BYTES, OwnRows
from veiltab.curator.alignment.private.masking import Masking
from veiltab.curator.table.table import Table
from veiltab.curator.table.tokens import TOKEN_LENGTH

ROOM = "messages of a linkage"
"""Name of the room that is kept for them."""

PAD = 4096
"""The keys that a hub shows in a pass are as many as a multiple of this."""

_PIECE = 2**16

COMPARED = 100
"""Number of the pass in which fields of linked pairs are compared; those of a ladder are at most 64."""

MOST_PAIRS = 20_000
"""Linked pairs that are compared: those of the least handles, which nobody chooses."""

MOST_PLACEBO_ROWS = 20_000
"""Rows that a spoke runs with moved dates too, at most: enough to foresee links by chance in a table of any size."""


@dataclass(kw_only=True, eq=False)
class Leg:
    """What a hub or a spoke has at hand in one session.

    Args:
        date_order: how its table writes dates; see `normaliser`.
        table: its own.
        session: where the others' messages are fetched.
        folder: holds the files of the session.
        secret: of this curator in this session, uniform.
        key: of tokens, which all curators have; None if keys are compared privately.
        room: of the disk of the folder.
        most_rows: curator -> the rows that it may have.
    """

    curator: str
    identity: IdentityRule
    date_order: str
    table: Table
    session: Session
    folder: Path
    secret: bytes = field(repr=False)
    key: bytes | None = field(repr=False)
    masking: Masking
    room: Room
    most_rows: dict[str, int]
    _own: OwnRows | None = field(default=None, init=False, repr=False)
    _beyond: dict[str, int] = field(default_factory=dict, init=False)

    async def own(self) -> OwnRows:
        """Return one's own identity fields, normalised once a process."""
        if self._own is None:
            with self.masking.stage.of("normalising identity fields", None):
                rows = self.table.respondents
                self._own = await asyncio.to_thread(OwnRows, self.identity, self.date_order, rows, self.folder)
        return self._own

    def path(self, message: LinkMessage) -> Path:
        """Return where a message lies that one has made."""
        return self.folder / message.file_name

    async def here(self, curator: str, message: LinkMessage, most: int, check: Callable[[Path], None]) -> Path:
        """Return the file of a peer's message, fetched and checked once.

        Args:
            most: bytes that it may have.
            check: refuses what no honest curator sends.
        """
        path = self.folder / message.received_name
        if not path.exists():
            fetched = path.with_suffix(".unchecked")

            def admit(total: int, written: int) -> None:
                if total > most:
                    raise InvalidInputError(
                        f"sends {total:,} bytes ({message.kind.value}, pass {message.number}), more than the {most:,}"
                        " that follow from its rows",
                        where=f"curator {curator}",
                    )
                self._beyond[message.received_name] = total - written
                self.room.keep(ROOM, sum(self._beyond.values()))

            with (
                measured_step("fetch masked ids") as measured,
                self.masking.stage.of(f"fetching keys of {curator}", None),
            ):
                await self.session.fetch(curator, message, fetched, most, admit)
                measured.bytes = fetched.stat().st_size
            self._beyond.pop(message.received_name, None)
            await asyncio.to_thread(check, fetched)
            fetched.rename(path)
        return path

    def values_of(self, number: int, scalar: Callable[[], bytes]) -> Callable[[bytes], bytes]:
        """Return F of digests in a pass, computed directly: by tokens, or under a scalar of one's own."""
        if self.key is not None:
            return partial(token_values, number, key=self.key)
        return partial(direct_values, number, scalar=scalar())

    def placebo_rows(self, rows: int) -> int:
        """Return how many rows a spoke of so many runs with moved dates: none privately, unless the study says so."""
        return min(rows, MOST_PLACEBO_ROWS) if self.identity.placebo or self.key is not None else 0

    def named(self, number: int) -> str:
        """Return what people call a pass."""
        return "the comparison" if number == COMPARED else f"pass {number} of {len(self.identity.ladder)}"

    def derived(self, label: str) -> bytes:
        """Return a secret key of this session for one purpose."""
        return derive(self.secret, f"linkage {label}")


def linkage_bytes(rows: int, types: Iterable[SymbolType], identity: IdentityRule, spokes: int) -> int:
    """Return what a linkage and the alignment after it write at most, if no other table is larger.

    The keys of a pass lie there up to five times: sorted, as they are asked about, and with their values; what is shown
    of all passes stays until it was fetched.
    Rows are written, and then put in order, twice each. Rows with moved dates have keys too.

    Args:
        types: of the symbols of each attribute.
        spokes: to whom keys are shown; 1 at a spoke.
    """
    keys = [most_variants(step, identity) for step in identity.ladder]
    row = TOKEN_LENGTH + ROW_BYTES + sum(type_.itemsize for type_ in types)
    key_bytes = VALUE_BYTES * sum(keys) * spokes + 5 * RECORD_BYTES * max(keys)
    return (rows + min(rows, MOST_PLACEBO_ROWS)) * key_bytes + 4 * rows * row + FOLDERS


def write(path: Path, data: bytes | memoryview) -> None:
    """Write a file that is there whole or not."""
    with written_whole(path) as file:
        file.write(data)


def check_whole(path: Path, width: int, curator: str) -> int:
    """Return how many records a message has.

    Raises:
        IntegrityError: it is cut short.
    """
    count, rest = divmod(path.stat().st_size, width)
    if rest:
        raise IntegrityError("sent a message of a linkage that is cut short", where=f"curator {curator}")
    return count


def check_ascending(path: Path, width: int, key: int, curator: str) -> None:
    """Refuse records whose first bytes do not ascend strictly."""
    check_whole(path, width, curator)
    last = np.empty((0, key), np.uint8)
    with path.open("rb") as file:
        while data := file.read(width * _PIECE):
            heads = np.concatenate([last, np.frombuffer(data, np.uint8).reshape(-1, width)[:, :key]])
            words = heads.view(f"S{key}").ravel()
            if not np.all(words[1:] > words[:-1]):
                raise IntegrityError(
                    "sent a message of a linkage out of order, or twice the same", where=f"curator {curator}"
                )
            last = heads[-1:]
