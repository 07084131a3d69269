"""Two registers with errors in names, dates and postcodes, and curators that link them in one process."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from tests.curator.alignment.circle import Seat
from tests.curator.made_rows import rows_of, workplace
from veiltab.common.core.domain import Symbols
from veiltab.common.linkage.hub_rule import accept
from veiltab.common.linkage.identity_rule import FieldKind, IdentityRule
from veiltab.common.linkage.ladder import ladder_of
from veiltab.common.linkage.row_keys import normal_rows, pass_keys
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.linking.link_exchange import LinkExchange
from veiltab.curator.alignment.linking.link_messages import LinkMessage, message_from_proto
from veiltab.curator.alignment.private.masking import Masking
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.linkage.linkage_report import LinkageReport
from veiltab.curator.linkage.linkages import Linkages, LinkedSample
from veiltab.curator.peers.coins import Coins
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.play.linkage.open_rule import first_candidates
from veiltab.v1.curator_peer_pb2 import FetchLinkRequest, FetchLinkResponse

FIELDS = (
    ("given", FieldKind.GIVEN),
    ("family", FieldKind.FAMILY),
    ("birth", FieldKind.BIRTH),
    ("sex", FieldKind.SEX),
    ("postcode", FieldKind.POSTCODE),
)
Person = tuple[str, str, str, str, str]
Tampering = Callable[[LinkMessage, bytes], bytes]
"""What a curator sends in the place of a message that it made."""

_SYLLABLES = [
    "ba",
    "be",
    "bi",
    "bo",
    "da",
    "de",
    "di",
    "do",
    "ka",
    "ke",
    "ki",
    "ko",
    "la",
    "le",
    "li",
    "lo",
    "ma",
    "me",
    "mi",
    "mo",
    "na",
    "ne",
    "ni",
    "no",
    "ra",
    "re",
    "ri",
    "ro",
    "sa",
    "se",
    "si",
    "so",
    "ta",
]


SHORT = ("given family birth sex", "given family birth:year postcode", "given~ birth postcode sex")
"""A ladder that is soon gone through, with a deletion pass."""


def identity(hub: str = "alice", keys: Sequence[str] = SHORT, **more: Any) -> IdentityRule:  # noqa: ANN401 - its fields
    return IdentityRule(fields=FIELDS, hub=hub, ladder=ladder_of(keys), **more)


def people(count: int, seed: int) -> list[Person]:
    """Return people of whom hardly two share a name and a date."""
    chance = np.random.default_rng(seed)

    def word(length: int) -> str:
        return "".join(chance.choice(_SYLLABLES, length))

    def date() -> str:
        return f"{chance.integers(1930, 2010)}-{chance.integers(1, 13):02}-{chance.integers(1, 29):02}"

    return [
        (word(3), word(4), date(), str(chance.choice(["m", "f"])), str(chance.integers(10_000, 99_999)))
        for _ in range(count)
    ]


def with_errors(group: Sequence[Person], seed: int) -> list[Person]:
    """Return people of whom a third is written down otherwise in one field."""
    chance, made = np.random.default_rng(seed), list[Person]()
    for given, family, birth, sex, postcode in group:
        match int(chance.integers(15)):
            case 0:
                place = int(chance.integers(len(given)))
                made.append((given[:place] + given[place + 1 :], family, birth, sex, postcode))
            case 1:
                made.append((given, family[::-1], birth, sex, postcode))
            case 2:
                made.append((family, given, birth, sex, postcode))
            case 3:
                made.append((given, family, birth[:5] + birth[8:] + birth[4:7], sex, postcode))
            case 4:
                made.append((given, family, birth, "", postcode))
            case 5:
                made.append((given, family, birth, sex, "99999"))
            case _:
                made.append((given, family, birth, sex, postcode))
    return made


def texts_of(rows: Sequence[Person]) -> list[str]:
    return ["\x1f".join(row) for row in rows]


def symbol(person: Person) -> int:
    """Return the value of a person's attribute."""
    return sum(map(ord, person[2])) % 251


def table_of(rows: Sequence[Person], version: str, incomplete: Collection[int] = ()) -> Table:
    """Return a table of which some rows miss a value of the attribute."""
    symbols: Symbols = np.array([symbol(row) for row in rows], np.uint8)
    half, texts = len(rows) // 2, texts_of(rows)
    return Table(
        respondents=rows_of([texts[:half], texts[half:]], {"length": symbols, "parity": symbols % 2}, incomplete),
        rows_read=len(rows),
        rows_dropped=len(incomplete),
        missing={},
        content_digest=version,
    )


def wanted_links(rule: IdentityRule, hub: Sequence[Person], spoke: Sequence[Person]) -> dict[int, int]:
    """Return the links of the rule itself: hub row -> spoke row."""
    mine, theirs = (normal_rows(rule, "ymd", list(zip(*rows, strict=True))) for rows in (hub, spoke))
    passes = [(step.number, pass_keys(step, mine), pass_keys(step, theirs)) for step in rule.ladder]
    return accept(first_candidates(passes, len(spoke)))


class Peer:
    """Another curator of this process, as one reads it."""

    def __init__(self, asker: "Curator", name: str) -> None:
        self._asker, self._name = asker, name
        self.stub = SimpleNamespace(FetchLink=None)

    async def stream(
        self, _: object, request: FetchLinkRequest, *, most: int, check: Callable[[FetchLinkResponse], None]
    ) -> AsyncIterator[bytes]:
        peer, message = self._asker.circle[self._name], message_from_proto(request)
        path = peer.exchange.link_file(request.alignment_id, request.session, message, self._asker.name)
        data = peer.tampering(message, path.read_bytes())
        self._asker.fetched[message] += 1
        check(FetchLinkResponse(total=len(data)))
        assert len(data) <= most
        self._asker.received[message] = data
        for start in range(0, len(data), 10_000):
            yield data[start : start + 10_000]


class Curator(Seat):
    """One curator; `received` is all that others sent it, and `tampering` changes what it sends."""

    exchange: LinkExchange
    circle: Mapping[str, "Curator"]

    def __init__(  # noqa: PLR0913 - what a curator consists of
        self,
        name: str,
        folder: Path,
        rows: Sequence[Person],
        *,
        names: Sequence[str],
        rule: IdentityRule,
        is_private: bool,
    ) -> None:
        self.name, self.folder, self.rows = name, folder, list(rows)
        self._names, self._rule, self._is_private = names, rule, is_private
        self.circle = {}
        self.received: dict[LinkMessage, bytes] = {}
        self.fetched = Counter[LinkMessage]()
        self.tampering: Tampering = lambda _message, data: data
        self.most_ids: dict[str, int] = dict.fromkeys(names, 10**6)
        self.table = table_of(self.rows, f"content of {name}")
        self.open()

    def open(self) -> None:
        """Start it on its folder, as a process does."""
        self.store = CuratorStore(self.folder / "curator.sqlite")
        room = Room(self.folder)
        self.exchange = LinkExchange(
            self.name,
            self._names,
            self.folder / "alignments",
            self.store,
            Masking(self.folder),
            room,
            identity=self._rule,
            date_order="ymd",
            is_private=self._is_private,
            most_ids=self.most_ids,
            maximum=10**9,
        )
        self.alignment = Alignment(
            self.name,
            self.folder,
            self.store,
            Ledger(self.store.connection, Decimal(1)),
            cast("Coins", self),
            self.exchange,
            room,
            workplace(self.folder),
            most_respondents=10**9,
            id_rules="",
        )

    @property
    def curators(self) -> dict[str, Peer]:
        return {name: Peer(self, name) for name in self.circle if name != self.name}

    @property
    def session_folder(self) -> Path:
        """The folder of its session."""
        return next(path for path in self.folder.glob("alignments/*/*") if path.is_dir())

    @property
    def report(self) -> LinkageReport:
        """What it knows of the linkage."""
        report = Linkages(self.store.connection, self.store.audit).latest_report()
        assert report is not None
        return report

    @property
    def sample(self) -> LinkedSample:
        """Where some linked rows are in its table."""
        return Linkages(self.store.connection, self.store.audit).latest_sample()

    @property
    def column(self) -> list[int]:
        """The symbols of the linked rows, in the order of all curators."""
        aligned = self.alignment.table(self.alignment.result()[1])
        return [int(symbol) for symbol in aligned.column("length")]


@contextmanager
def registers(
    folder: Path, tables: Sequence[Sequence[Person]], rule: IdentityRule, *, is_private: bool
) -> Iterator[list[Curator]]:
    """Make curators with these tables; the first is called alice."""
    names = ("alice", "bob", "carol")[: len(tables)]
    made = [
        Curator(name, folder / name, rows, names=names, rule=rule, is_private=is_private)
        for name, rows in zip(names, tables, strict=True)
    ]
    for curator in made:
        curator.circle = {each.name: each for each in made}
    try:
        yield made
    finally:
        for curator in made:
            curator.close()
