"""The public description of a release of one or more tables; the same object at every party.

One table runs under the release's id. Several tables run as releases of their own, each with an id, a sample or order,
a seed, pads, coins and receipts of its own; request, decisions and charge are those of the release. Tables are numbered
from 0. Where some of them may run a second time, chosen after the first results, table i is then number T + i of T.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache

from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.release.table_spec import Spec, TableSpec
from veiltab.common.study.limits import MAX_TABLES


def table_id(release_id: str, number: int) -> str:
    """Return the release id of one of several tables, 32 hexadecimal digits."""
    text = b"veiltab table" + bytes.fromhex(release_id) + number.to_bytes(4, "big")
    return hashlib.sha256(text).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """How one table of a release is randomised.

    Args:
        columns: places of its columns among those of the release, ascending.
        server_replacement: r_s in units of 2^-64, 1..2^64.
        curator_replacement: r_c in units of 2^-64; 0 for none.
        canaries: rows of known symbols that travel among the data, to test the server.
    """

    columns: tuple[int, ...]
    server_replacement: int
    curator_replacement: int
    canaries: int


@dataclass(frozen=True, kw_only=True)
class ReleaseSpec(Spec):
    """Everything public about a release; its digest is compared by all curators before the charge.

    Args:
        several: whether the tables run under ids of their own; a release of one table runs under the release's.
        tables: all that run, each once.
        repeated: the same tables as they run a second time, in the same order; none without repeats.
        repeats: so many of them may run a second time, each once.

    Raises:
        InvalidInputError: a part that contradicts the others, or a table that is not a valid release.
    """

    several: bool
    tables: tuple[TablePlan, ...]
    repeated: tuple[TablePlan, ...] = ()
    repeats: int = 0

    def __post_init__(self) -> None:
        if not 1 <= len(self.tables) <= MAX_TABLES:
            raise InvalidInputError(f"the release has no table, or more than {MAX_TABLES}", where="tables")
        is_one = len(self.tables) == 1 and not self.repeated and len(self.tables[0].columns) == len(self.columns)
        if not (self.several or is_one):
            raise InvalidInputError("several tables are listed in a release of one", where="tables")
        if self.several and self.delta is None:
            raise InvalidInputError("no delta was given for several tables", where="delta")
        sets = [plan.columns for plan in self.tables]
        for columns in sets:
            if any(place >= len(self.columns) for place in columns) or list(columns) != sorted(set(columns)):
                raise InvalidInputError("the columns of a table are not listed in order, each once", where="tables")
        if len(set(sets)) != len(sets):
            raise InvalidInputError("a table is listed twice", where="tables")
        if not 0 <= self.repeats <= len(self.repeated):
            raise InvalidInputError("more tables are to run again than are planned to", where="repeats")
        if bool(self.repeated) != bool(self.repeats) or (self.repeated and [p.columns for p in self.repeated] != sets):
            raise InvalidInputError("the tables that may run again are not the tables", where="repeats")
        # A table that is not a valid release refuses itself.
        for number in range(len(self.tables) + len(self.repeated)):
            self.table(number)

    def plan(self, number: int) -> TablePlan:
        """Return how a table is randomised.

        Raises:
            NotFoundError: there is no table of this number.
        """
        plans = self.tables + self.repeated
        if not 0 <= number < len(plans):
            raise NotFoundError(f"there is no table {number}", where=f"release {self.release_id}")
        return plans[number]

    def again(self, number: int) -> int:
        """Return the number under which a table runs a second time."""
        return len(self.tables) + number

    def table_id(self, number: int) -> str:
        """Return the id that a table runs under."""
        return table_id(self.release_id, number) if self.several else self.release_id

    def table(self, number: int) -> TableSpec:
        """Return a table as the release that it runs as.

        Raises:
            NotFoundError: there is no table of this number.
        """
        plan = self.plan(number)
        return self.only_table or self._table(number, plan)

    def _table(self, number: int, plan: TablePlan) -> TableSpec:
        changes = {
            "release_id": self.table_id(number),
            "columns": tuple(self.columns[place] for place in plan.columns),
            "part_of": self.release_id if self.several else "",
        }
        noise = {name: getattr(plan, name) for name in ("server_replacement", "curator_replacement", "canaries")}
        return TableSpec(**self.alike | noise | changes)

    @cached_property
    def only_table(self) -> TableSpec | None:
        """The table of a release of one; None of several."""
        return None if self.several else self._table(0, self.tables[0])

    def each_table(self) -> Iterator[TableSpec]:
        """Yield the tables as they run first, in order of their numbers."""
        return (self.table(number) for number in range(len(self.tables)))

    def each_repeat(self) -> Iterator[TableSpec]:
        """Yield the tables as they run a second time, in the same order; nothing without repeats."""
        return (self.table(self.again(number)) for number in range(len(self.repeated)))

    def most(self, size: Callable[[TableSpec], int]) -> int:
        """Return the sum of some size of the tables that run, at most: whichever run a second time."""
        again = sorted(map(size, self.each_repeat()), reverse=True)
        return sum(map(size, self.each_table())) + sum(again[: self.repeats])

    def attributes(self, number: int) -> tuple[str, ...]:
        """Return the attributes of a table, in study order."""
        return tuple(self.columns[place].attribute for place in self.plan(number).columns)

    @classmethod
    def from_json(cls, text: str) -> "ReleaseSpec":
        """Read back what `to_json` wrote; a party reads that of a release from its database at every step."""
        return read_canonical(cls, text)


@lru_cache(maxsize=64)
def release_of(table: TableSpec) -> ReleaseSpec:
    """Return a release of one table, as its table describes it."""
    plan = TablePlan(
        columns=tuple(range(len(table.columns))),
        server_replacement=table.server_replacement,
        curator_replacement=table.curator_replacement,
        canaries=table.canaries,
    )
    return ReleaseSpec(**table.alike, several=False, tables=(plan,))
