"""Two registers with errors in names, dates and postcodes, and curators that link them in one process."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np

from tests.curator.alignment.circle import ABSENT, Seat
from tests.curator.made_rows import rows_of, workplace
from veiltab.common.core.domain import Symbols
from veiltab.common.linkage.identity_rule import FieldKind, IdentityRule
from veiltab.common.linkage.ladder import ladder_of
from veiltab.common.linkage.row_keys import normal_rows, pass_keys
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.alignment.joining.join_exchange import JoinExchange
from veiltab.curator.alignment.joining.legs import Legs
from veiltab.curator.alignment.linking.link_join import LinkJoin
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.linkage.linkage_report import LinkageReport
from veiltab.curator.linkage.linkages import Linkages
from veiltab.curator.peers.coins import Coins
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.play.linkage.open_rule import first_candidates, resolve

FIELDS = (
    ("given", FieldKind.GIVEN),
    ("family", FieldKind.FAMILY),
    ("birth", FieldKind.BIRTH),
    ("sex", FieldKind.SEX),
    ("postcode", FieldKind.POSTCODE),
)
Person = tuple[str, str, str, str, str]
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
    return sum(map(ord, person[2])) % ABSENT


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
    return resolve(first_candidates(passes, len(spoke)))


class Curator(Seat):
    """One curator; `received` is all that others sent it, and `tampering` changes what it sends."""

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
        self.circle, self.received = {}, {}
        self.tampering = lambda _message, data: data
        self.table = table_of(self.rows, f"content of {name}")
        self.open()

    def open(self) -> None:
        """Start it on its folder, as a process does."""
        name, (hub, *spokes), folder = self.name, self._names, self.folder
        self.store = CuratorStore(folder / "curator.sqlite")
        room = Room(folder)
        legs = Legs(
            name,
            spokes if name == hub else [hub],
            is_hub=name == hub,
            folder=folder / "alignments",
            store=self.store,
            room=room,
            most_rows=dict.fromkeys(self._names, 10**6),
            maximum=10**9,
        )
        join = LinkJoin(
            legs,
            folder / "alignments",
            self.store,
            identity=self._rule,
            date_order="ymd",
            is_private=self._is_private,
        )
        lacking = {name: Lacking(categories=ABSENT, parts=1) for name in ("length", "parity")}
        self.exchange = JoinExchange(legs, join, folder / "alignments", folder, lacking)
        self.alignment = Alignment(
            name,
            folder,
            self.store,
            Ledger(self.store.connection, Decimal(1)),
            cast("Coins", self),
            self.exchange,
            room,
            workplace(folder),
            most_respondents=10**9,
            lacking=lacking,
        )

    @property
    def linkages(self) -> Linkages:
        """What it keeps of its linkages."""
        return Linkages(self.store.connection, self.store.audit)

    @property
    def report(self) -> LinkageReport:
        """What it knows of the linkage."""
        report = self.linkages.latest_report()
        assert report is not None
        return report


@contextmanager
def registers(
    folder: Path, tables: Sequence[Sequence[Person]], rule: IdentityRule, *, is_private: bool
) -> Iterator[list[Curator]]:
    """Make curators with these tables; the first is called alice, and is the hub."""
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
