"""Two registers with errors in names, dates and postcodes, and curators that link them in one process."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.curator.alignment.circle import ABSENT, NAMES, Seat, seated
from tests.curator.made_rows import rows_of, table_with
from veiltab.common.core.domain import Symbols
from veiltab.common.linkage.identity_rule import FieldKind, IdentityRule
from veiltab.common.linkage.ladder import ladder_of
from veiltab.common.linkage.row_keys import normal_rows, pass_keys
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.alignment.linking.link_join import LinkJoin
from veiltab.curator.linkage.linkage_report import LinkageReport
from veiltab.curator.linkage.linkages import Linkages
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
_SYLLABLES = [consonant + vowel for consonant in "bdklmnrs" for vowel in "aeio"] + ["ta"]


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
    respondents = rows_of([texts[:half], texts[half:]], {"length": symbols, "parity": symbols % 2}, incomplete)
    return table_with(respondents, len(rows), version, len(incomplete))


def wanted_links(rule: IdentityRule, hub: Sequence[Person], spoke: Sequence[Person]) -> dict[int, int]:
    """Return the links of the rule itself: hub row -> spoke row."""
    mine, theirs = (normal_rows(rule, "ymd", list(zip(*rows, strict=True))) for rows in (hub, spoke))
    passes = [(step.number, pass_keys(step, mine), pass_keys(step, theirs)) for step in rule.ladder]
    return resolve(first_candidates(passes, len(spoke)))


class Curator(Seat):
    """One curator; `received` is all that others sent it, and `tampering` changes what it sends."""

    circle: Mapping[str, "Curator"]
    lacking = dict.fromkeys(("length", "parity"), Lacking(categories=ABSENT, parts=1))

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        folder: Path,
        rows: Sequence[Person],
        join: Callable[[Seat, Sessions], LinkJoin],
    ) -> None:
        self.rows, self._join = list(rows), join
        super().__init__(name, names, folder, table_of(self.rows, f"content of {name}"))

    def join(self, sessions: Sessions) -> LinkJoin:
        return self._join(self, sessions)

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

    def join(seat: Seat, sessions: Sessions) -> LinkJoin:
        place = seat.folder / "alignments"
        return LinkJoin(sessions, place, seat.store, identity=rule, date_order="ymd", is_private=is_private)

    names = NAMES[: len(tables)]
    made = [Curator(name, names, folder / name, rows, join) for name, rows in zip(names, tables, strict=True)]
    with seated(made):
        yield made
