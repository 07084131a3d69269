"""What parties do in a release of linked tables, and in rounds of collection: their works, their room, their limits.

Bytes are counted from the formats: tokens, symbols, row numbers, digests. CPU is that of unit costs (see
veiltab.deploy.plan.scale.costs). The limits are imported from where the product has them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, comb, log2, sqrt

import numpy as np

from veiltab.common.collection.round import MAX_POPULATION
from veiltab.common.collection.tokens import DIGEST_BYTES
from veiltab.common.errors import InvalidInputError
from veiltab.common.https.http_limits import MOST_CONNECTIONS
from veiltab.common.privacy.shuffle import MAX_SAMPLE
from veiltab.common.release.messages.release_messages import MAX_COLUMNS
from veiltab.common.rpc.server import Limits
from veiltab.common.storage.partitions import SECTION
from veiltab.common.study.file import MAX_CELLS, MAX_RESPONDENTS, MAX_TABLES
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.progress.table_steps import MOST_TABLES_AT_A_TIME
from veiltab.curator.table.spread import SPREAD
from veiltab.curator.table.tokens import TOKEN_LENGTH
from veiltab.curator.table.workplace import is_small
from veiltab.deploy.plan.scale.costs import Costs, Way
from veiltab.deploy.plan.scale.model import Machine, Need, Party, Room, Scale, Work, seconds_to_result
from veiltab.server.rounds.rounds import MOST_AT_ONCE

ID_BYTES = 18
"""Of an id that a curator keeps while it runs: 13 characters, their number, and whether its row is complete."""

RELEASE_HOURS = 24.0
"""Until an unfinished release is abandoned, if its researcher does not say otherwise."""

_ROW_BYTES = 8
"""Of a row number, or a word by which rows are ordered."""

_WIRE = 1.004
"""Bytes on the link for a byte of a stream: digests of its chunks, frames, and records of TLS."""

_REPORT_TRIPS = 3
"""Until a report on a new connection is answered: TCP, TLS, the report."""

_CURATOR, _SERVER, _RESEARCHER = Party


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """A study of curators, which is aligned once, and one release.

    Args:
        curators: k.
        rows: of each table; all of its respondents are common, which is the dearest case.
        attributes: of each curator, of at most 256 categories; all are released.
        sample: rows of the release, m.
        pairs: whether every pair of attributes is a table of the release, and not one table of all.
        canaries: rows of each table of the release besides, which test the server.

    Raises:
        InvalidInputError: the sample is larger than a table.
    """

    curators: int
    rows: int
    attributes: int
    sample: int
    pairs: bool
    canaries: int = 0

    def __post_init__(self) -> None:
        """Check."""
        if self.sample > self.rows:
            problem, remedy = f"{self.sample:,} rows cannot be drawn from {self.rows:,}", "Sample at most all of them."
            raise InvalidInputError(problem, where="--sample", remedy=remedy)

    @property
    def columns(self) -> int:
        """Attributes of all curators together."""
        return self.curators * self.attributes

    @property
    def tables(self) -> int:
        """Tables of the release."""
        return comb(self.columns, 2) if self.pairs else 1

    @property
    def draws(self) -> int:
        """Tables with columns of one curator, which draws a sample for each."""
        others = self.columns - self.attributes
        return comb(self.attributes, 2) + self.attributes * others if self.pairs else 1

    @property
    def uploads(self) -> int:
        """Columns that one curator encrypts and sends."""
        return self.attributes * (self.columns - 1) if self.pairs else self.attributes

    @property
    def uploaded(self) -> int:
        """Rows of an uploaded column."""
        return self.sample + self.canaries


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Rounds of collection: the nodes that report, the reports of each (one a round), and how they come."""

    nodes: int
    reports: int
    way: Way


def scale_of_tables(study: Tables, costs: Costs, machine: Machine) -> Scale:
    """Return what an alignment and a release take, with costs of a row and a byte, and a machine of each party."""
    rooms = _table_rooms(study, costs, machine)
    starting = tuple(
        Work("start", party, serial=costs[f"start_{name}"])
        for party, name in zip(Party, ("curator", "server", "researcher"), strict=True)
    )
    aligning = _on_disks(_with_pages(_alignment(study, costs), costs), rooms, machine)
    releasing = _on_disks(_with_pages(_release(study, costs), costs), rooms, machine)
    fewer = "a faster core; or sample fewer rows"
    return Scale(
        works=starting + aligning + releasing,
        machine=machine,
        rooms=rooms,
        limits=_table_limits(study, seconds_to_result(releasing, machine)),
        remedies={_CURATOR: "more cores, or more machines (--dask)", _SERVER: fewer, _RESEARCHER: fewer},
    )


def scale_of_rounds(rounds: Rounds, costs: Costs, memory: Costs, machine: Machine) -> Scale:
    """Return what rounds take at the server, and at the researcher who enrols the nodes.

    Args:
        memory: of the processes, among the costs of tables.
    """
    tokens = rounds.nodes * rounds.reports * costs["token_bytes"]
    rooms = {_SERVER: Room(memory["server"], tokens, tokens), _RESEARCHER: Room(memory["researcher"], 0.0, 0.0)}
    works = _on_disks(_collection(rounds, costs), rooms, machine)
    return Scale(
        works=works,
        machine=machine,
        rooms=rooms,
        limits=_round_limits(rounds, works[-1], machine),
        remedies={_SERVER: "more processes of the server, with PostgreSQL", _RESEARCHER: "a faster core"},
    )


def _on_disks(works: Iterable[Work], rooms: Mapping[Party, Room], machine: Machine) -> tuple[Work, ...]:
    """Return the works as they are where memory has room for all that a party wrote: it reads from there."""
    cached = {party for party, room in rooms.items() if room.memory + room.disk <= machine.memory}
    return tuple(replace(work, read=0.0) if work.party in cached else work for work in works)


def _with_pages(works: Iterable[Work], costs: Costs) -> Iterable[Work]:
    """Yield the works with the CPU of the pages that they write."""
    for work in works:
        kind = "parallel" if work.parallel else "serial"
        yield replace(work, **{kind: getattr(work, kind) + 1e-9 * costs["page"] * work.written})


def _cut_seconds(rows: int, ordered: int, costs: Costs) -> float:
    """Return the CPU of opening the files from which the sections of ordered rows are read, all together."""
    return 1e-6 * costs["cut"] * rows / SPREAD * (ordered / SECTION)


def _alignment(study: Tables, costs: Costs) -> Iterable[Work]:
    """Yield the works from the tables' files to the common respondents."""
    rows, others, attributes = study.rows, study.curators - 1, study.attributes
    kept, token, row = ID_BYTES + attributes, TOKEN_LENGTH, TOKEN_LENGTH + attributes
    streamed, ns = rows * others * token, 1e-9 * rows
    load, order, keep = (costs[name] + attributes * costs[f"{name}_symbol"] for name in ("load", "order", "keep"))
    yield Work("load", _CURATOR, parallel=ns * load, written=rows * kept)
    ordering = ns * order + _cut_seconds(rows, rows, costs)
    yield Work("order", _CURATOR, parallel=ordering, written=rows * 2 * row, read=rows * (kept + row))
    yield Work(
        "exchange",
        _CURATOR,
        serial=2e-9 * streamed * costs["stream"],
        sent=_WIRE * streamed,
        received=_WIRE * streamed,
        written=streamed,
        read=streamed,
        trips=4 * others,
    )
    searching = ns * (others * costs["search"] + keep)
    yield Work("search", _CURATOR, parallel=searching, written=rows * row, read=streamed + rows * (row + token))


def _release(study: Tables, costs: Costs) -> Iterable[Work]:
    """Yield the works from the announcement to the counts."""
    symbols, numbers, draws = study.uploaded * study.uploads, _ROW_BYTES * study.sample, study.draws
    every, stream = study.curators * symbols, 1e-9 * costs["stream"]
    drawing = 1e-9 * (study.rows * costs["draw"] + study.sample * costs["pick"])
    yield Work(
        "draw",
        _CURATOR,
        parallel=draws * (drawing + _cut_seconds(study.rows, study.sample, costs)),
        written=draws * 2 * numbers,
        read=draws * (TOKEN_LENGTH * study.rows + 2 * numbers),
        trips=4,
    )
    encrypting, places = 1e-9 * symbols * costs["encrypt"], study.uploads * numbers
    yield Work("encrypt", _CURATOR, parallel=encrypting, written=symbols, read=symbols + places)
    yield Work("upload", _CURATOR, serial=symbols * stream, sent=_WIRE * symbols, read=symbols, trips=2)
    yield Work("upload", _SERVER, serial=every * stream, received=_WIRE * every, written=every, read=every)
    yield Work("perturb", _SERVER, serial=1e-9 * every * costs["perturb"], written=every, read=every)
    yield Work("fetch", _SERVER, serial=every * stream, sent=_WIRE * every, read=every)
    yield Work("fetch", _RESEARCHER, serial=every * stream, received=_WIRE * every, written=every, trips=2)
    yield Work("count", _RESEARCHER, serial=1e-9 * every * costs["count"], read=2 * every, trips=4)
    if not study.pairs:
        seconds = 1e-3 * sqrt(study.sample) * costs["certify"]
        yield Work("certify", _RESEARCHER, serial=seconds, trips=1, is_awaited=False)


def _table_rooms(study: Tables, costs: Costs, machine: Machine) -> dict[Party, Room]:
    """Return the room of each party.

    A curator has its table. Beside it are first an alignment on its way, then what is left of it with a release; the
    ciphertext of the canaries is there twice, with all of the column's, and later with what the server published. The
    server keeps what it published; columns under way are there with and without its noise, and the places of canaries.
    """
    at_a_time = min(study.tables, MOST_TABLES_AT_A_TIME)
    width = 2 if study.pairs else study.columns
    table = study.rows * (ID_BYTES + study.attributes)
    aligning = alignment_bytes(study.rows, [np.dtype(np.uint8)] * study.attributes, study.curators)
    aligned = study.rows * (2 * TOKEN_LENGTH + study.attributes)
    encrypted = (study.uploaded + study.canaries) * min(width, study.attributes)
    releasing = aligned + at_a_time * (3 * _ROW_BYTES * study.sample + encrypted)
    published = study.uploaded * study.uploads * study.curators
    under_way = at_a_time * (study.uploaded * width + _ROW_BYTES * study.canaries)
    computing = costs["curator"] + (0 if is_small(study.rows) else machine.cores * costs["worker"])
    return {
        _CURATOR: Room(computing, table + max(aligning, releasing), table + aligned),
        _SERVER: Room(costs["server"], published + under_way, published),
        _RESEARCHER: Room(costs["researcher"], under_way, 0.0),
    }


def _table_limits(study: Tables, seconds: float) -> tuple[Need, ...]:
    """Return what the product limits in such a study, whose release takes so long."""
    divide, pure = "Divide them between studies, by region for instance.", "Sample fewer, or ask for a pure epsilon."
    fewer = "Release fewer attributes at a time."
    pairs = "Release pairs of attributes (--pairs), and fit a model to them."
    bits = "bits of a cell's number, if attributes have two categories"
    hours, longer = seconds / 3600, "Ask with a longer --lifetime-hours."
    return (
        Need("respondents of a table", study.rows, MAX_RESPONDENTS, divide),
        Need("rows of a sample with a delta", study.sample, MAX_SAMPLE, pure),
        Need("columns of a release", study.columns, MAX_COLUMNS, fewer),
        Need(bits, 2 if study.pairs else study.columns, log2(MAX_CELLS), pairs),
        Need("tables of a release", study.tables, MAX_TABLES, fewer),
        Need("a release, until it is abandoned", hours, RELEASE_HOURS, longer, "h"),
    )


def _collection(rounds: Rounds, costs: Costs) -> Iterable[Work]:
    """Yield the works of enrolling nodes and taking their reports; the reports last."""
    reports = rounds.nodes * rounds.reports
    digests, rows = _WIRE * DIGEST_BYTES * reports, reports * costs["token_bytes"]
    yield Work("enrol", _RESEARCHER, sent=digests, trips=2)
    yield Work("enrol", _SERVER, serial=1e-6 * reports * costs["enrol"], received=digests, written=2 * rows)
    yield Work(
        "reports",
        _SERVER,
        serial=1e-6 * reports * costs["report"],
        received=reports * costs["received"],
        sent=reports * costs["sent"],
        written=2 * rows,
        read=rows,
        flushing=ceil(reports / MOST_AT_ONCE) * costs["flush"],
    )


def _round_limits(rounds: Rounds, taking: Work, machine: Machine) -> tuple[Need, ...]:
    """Return what the product limits in such rounds, at the rate at which reports can be taken."""
    rate = rounds.nodes * rounds.reports / taking.slowest(machine)[1]
    most = MOST_CONNECTIONS if rounds.way.is_https else Limits().calls_nodes
    divide = "Divide them between studies, each with a server of its own."
    more = "Run more processes of the server, with PostgreSQL."
    return (
        Need("nodes of a round", rounds.nodes, MAX_POPULATION, divide),
        Need("connections of nodes at a time", rate * _REPORT_TRIPS * machine.latency, most, more),
    )
