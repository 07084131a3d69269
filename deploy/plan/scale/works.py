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
from veiltab.deploy.plan.scale.costs import ReportCosts, TableCosts, Way
from veiltab.deploy.plan.scale.model import Machine, Need, Party, Room, Scale, Work, seconds_to_result
from veiltab.server.https.http_options import MOST_CONNECTIONS
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

_MOST = 10**12


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
        InvalidInputError: there can be no such study.
    """

    curators: int
    rows: int
    attributes: int
    sample: int
    pairs: bool
    canaries: int = 0

    def __post_init__(self) -> None:
        """Check."""
        _check(self.curators, 2, "--curators", "A release links the tables of at least two.")
        _check(self.rows, 1, "--rows", "Give the respondents of a table, such as 1e8.")
        _check(self.attributes, 1, "--attributes", "Give those of one curator.")
        _check(self.sample, 1, "--sample", "Leave it away to sample everybody.")
        _check(self.canaries, 0, "--canaries", "`veiltab plan` says how many a release has.")
        if self.sample > self.rows:
            raise InvalidInputError(
                f"{self.sample:,} rows cannot be drawn from {self.rows:,}",
                where="--sample",
                remedy="Sample at most as many rows as a table has.",
            )

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
    """Rounds of collection, each over all nodes.

    Args:
        nodes: that report.
        reports: of each node, one a round.
        way: how reports reach the server.

    Raises:
        InvalidInputError: there can be no such rounds.
    """

    nodes: int
    reports: int
    way: Way

    def __post_init__(self) -> None:
        """Check."""
        _check(self.nodes, 1, "--nodes", "Give the nodes of a round, such as 1e8.")
        _check(self.reports, 1, "--reports-per-node", "A node reports once a round.")


def _check(value: int, least: int, where: str, remedy: str) -> None:
    if not least <= value <= _MOST:
        raise InvalidInputError(f"must be {least:,} to {_MOST:,}, not {value:,}", where=where, remedy=remedy)


def scale_of_tables(study: Tables, costs: TableCosts, machine: Machine) -> Scale:
    """Return what an alignment and a release take.

    Args:
        study: the tables.
        costs: of a row and a byte.
        machine: of each party.
    """
    rooms = _table_rooms(study, costs, machine)
    starts = {
        Party.CURATOR: costs.start_curator,
        Party.SERVER: costs.start_server,
        Party.RESEARCHER: costs.start_researcher,
    }
    starting = tuple(Work(stage="start", party=party, serial=seconds) for party, seconds in starts.items())
    aligning = _on_disks(_with_pages(_alignment(study, costs), costs), rooms, machine)
    releasing = _on_disks(_with_pages(_release(study, costs), costs), rooms, machine)
    return Scale(
        works=starting + aligning + releasing,
        machine=machine,
        rooms=rooms,
        limits=_table_limits(study, seconds_to_result(releasing, machine)),
        remedies={
            Party.CURATOR: "more cores, or more machines (--dask)",
            Party.SERVER: "a faster core; or sample fewer rows",
            Party.RESEARCHER: "a faster core; or sample fewer rows",
        },
    )


def scale_of_rounds(rounds: Rounds, costs: ReportCosts, memory: TableCosts, machine: Machine) -> Scale:
    """Return what rounds take at the server, and at the researcher who enrols the nodes.

    Args:
        rounds: of all nodes.
        costs: of a report.
        memory: of the processes.
        machine: of each party.
    """
    tokens = rounds.nodes * rounds.reports * costs.token_bytes
    rooms = {
        Party.SERVER: Room(memory=memory.server, disk=tokens, kept=tokens),
        Party.RESEARCHER: Room(memory=memory.researcher, disk=0.0, kept=0.0),
    }
    works = _on_disks(_collection(rounds, costs), rooms, machine)
    return Scale(
        works=works,
        machine=machine,
        rooms=rooms,
        limits=_round_limits(rounds, works[-1], machine),
        remedies={
            Party.SERVER: "more processes of the server, with PostgreSQL",
            Party.RESEARCHER: "a faster core",
        },
    )


def _on_disks(works: Iterable[Work], rooms: Mapping[Party, Room], machine: Machine) -> tuple[Work, ...]:
    """Return the works as they are where memory has room for all that a party wrote: it reads from there."""
    cached = {party for party, room in rooms.items() if room.memory + room.disk <= machine.memory}
    return tuple(replace(work, read=0.0) if work.party in cached else work for work in works)


def _with_pages(works: Iterable[Work], costs: TableCosts) -> Iterable[Work]:
    """Yield the works with the CPU of the pages that they write."""
    for work in works:
        seconds = 1e-9 * costs.page * work.written
        if work.parallel:
            yield replace(work, parallel=work.parallel + seconds)
        else:
            yield replace(work, serial=work.serial + seconds)


def _cuts(rows: int, ordered: int) -> float:
    """Return how many files the sections of ordered rows are read from, all together."""
    return rows / SPREAD * (ordered / SECTION)


def _alignment(study: Tables, costs: TableCosts) -> Iterable[Work]:
    """Yield the works from the tables' files to the common respondents."""
    rows, others, attributes, curator = study.rows, study.curators - 1, study.attributes, Party.CURATOR
    kept, token, row = ID_BYTES + attributes, TOKEN_LENGTH, TOKEN_LENGTH + attributes
    streamed = rows * others * token
    yield Work(
        stage="load",
        party=curator,
        parallel=1e-9 * rows * (costs.load + attributes * costs.load_symbol),
        written=rows * kept,
    )
    yield Work(
        stage="order",
        party=curator,
        parallel=1e-9 * rows * (costs.order + attributes * costs.order_symbol) + 1e-6 * costs.cut * _cuts(rows, rows),
        written=rows * 2 * row,
        read=rows * (kept + row),
    )
    yield Work(
        stage="exchange",
        party=curator,
        serial=2e-9 * streamed * costs.stream,
        sent=_WIRE * streamed,
        received=_WIRE * streamed,
        written=streamed,
        read=streamed,
        trips=4 * others,
    )
    yield Work(
        stage="search",
        party=curator,
        parallel=1e-9 * rows * (others * costs.search + costs.keep + attributes * costs.keep_symbol),
        written=rows * row,
        read=streamed + rows * (row + token),
    )


def _release(study: Tables, costs: TableCosts) -> Iterable[Work]:
    """Yield the works from the announcement to the counts."""
    symbols, numbers = study.uploaded * study.uploads, _ROW_BYTES * study.sample
    every = study.curators * symbols
    yield Work(
        stage="draw",
        party=Party.CURATOR,
        parallel=study.draws
        * (
            1e-9 * (study.rows * costs.draw + study.sample * costs.pick)
            + 1e-6 * costs.cut * _cuts(study.rows, study.sample)
        ),
        written=study.draws * 2 * numbers,
        read=study.draws * (TOKEN_LENGTH * study.rows + 2 * numbers),
        trips=4,
    )
    yield Work(
        stage="encrypt",
        party=Party.CURATOR,
        parallel=1e-9 * symbols * costs.encrypt,
        written=symbols,
        read=symbols + study.uploads * numbers,
    )
    stream, on_link = 1e-9 * costs.stream, _WIRE
    yield Work(
        stage="upload", party=Party.CURATOR, serial=symbols * stream, sent=on_link * symbols, read=symbols, trips=2
    )
    yield Work(
        stage="upload", party=Party.SERVER, serial=every * stream, received=on_link * every, written=every, read=every
    )
    yield Work(stage="perturb", party=Party.SERVER, serial=1e-9 * every * costs.perturb, written=every, read=every)
    yield Work(stage="fetch", party=Party.SERVER, serial=every * stream, sent=on_link * every, read=every)
    yield Work(
        stage="fetch", party=Party.RESEARCHER, serial=every * stream, received=on_link * every, written=every, trips=2
    )
    yield Work(stage="count", party=Party.RESEARCHER, serial=1e-9 * every * costs.count, read=2 * every, trips=4)
    if not study.pairs:
        yield Work(
            stage="certify",
            party=Party.RESEARCHER,
            serial=1e-3 * sqrt(study.sample) * costs.certify,
            trips=1,
            is_awaited=False,
        )


def _table_rooms(study: Tables, costs: TableCosts, machine: Machine) -> dict[Party, Room]:
    """Return the room of each party.

    A curator has its table. Beside it are first an alignment on its way, then what is left of it with a release; the
    ciphertext of the canaries is there twice, with all of the column's, and later with what the server published. The
    server keeps what it published; columns under way are there with and without its noise, and the places of canaries.
    """
    at_a_time = min(study.tables, MOST_TABLES_AT_A_TIME)
    width = 2 if study.pairs else study.columns
    table = study.rows * (ID_BYTES + study.attributes)
    types = [np.dtype(np.uint8)] * study.attributes
    aligning = alignment_bytes(study.rows, types, study.curators)
    aligned = study.rows * (2 * TOKEN_LENGTH + study.attributes)
    encrypted = (study.uploaded + study.canaries) * min(width, study.attributes)
    releasing = aligned + at_a_time * (3 * _ROW_BYTES * study.sample + encrypted)
    published = study.uploaded * study.uploads * study.curators
    under_way = at_a_time * (study.uploaded * width + _ROW_BYTES * study.canaries)
    computing = costs.curator + (0 if is_small(study.rows) else machine.cores * costs.worker)
    return {
        Party.CURATOR: Room(memory=computing, disk=table + max(aligning, releasing), kept=table + aligned),
        Party.SERVER: Room(memory=costs.server, disk=published + under_way, kept=published),
        Party.RESEARCHER: Room(memory=costs.researcher, disk=under_way, kept=0.0),
    }


def _table_limits(study: Tables, seconds: float) -> tuple[Need, ...]:
    """Return what the product limits in such a study, whose release takes so long."""
    fewer = "Release fewer attributes at a time."
    one_table = 2 if study.pairs else study.columns
    return (
        Need(
            what="respondents of a table",
            value=study.rows,
            most=MAX_RESPONDENTS,
            remedy="Divide them between studies, by region for instance.",
        ),
        Need(
            what="rows of a sample with a delta",
            value=study.sample,
            most=MAX_SAMPLE,
            remedy="Sample fewer, or ask for a pure epsilon.",
        ),
        Need(what="columns of a release", value=study.columns, most=MAX_COLUMNS, remedy=fewer),
        Need(
            what="bits of a cell's number, if attributes have two categories",
            value=one_table,
            most=log2(MAX_CELLS),
            remedy="Release pairs of attributes (--pairs), and fit a model to them.",
        ),
        Need(what="tables of a release", value=study.tables, most=MAX_TABLES, remedy=fewer),
        Need(
            what="a release, until it is abandoned",
            value=seconds / 3600,
            most=RELEASE_HOURS,
            remedy="Ask with a longer --lifetime-hours.",
            unit="h",
        ),
    )


def _collection(rounds: Rounds, costs: ReportCosts) -> Iterable[Work]:
    """Yield the works of enrolling nodes and taking their reports; the reports last."""
    reports = rounds.nodes * rounds.reports
    digests, rows = _WIRE * DIGEST_BYTES * reports, reports * costs.token_bytes
    yield Work(stage="enrol", party=Party.RESEARCHER, sent=digests, trips=2)
    yield Work(
        stage="enrol", party=Party.SERVER, serial=1e-6 * reports * costs.enrol, received=digests, written=2 * rows
    )
    yield Work(
        stage="reports",
        party=Party.SERVER,
        serial=1e-6 * reports * costs.report,
        received=reports * costs.received,
        sent=reports * costs.sent,
        written=2 * rows,
        read=rows,
        flushing=ceil(reports / MOST_AT_ONCE) * costs.flush,
    )


def _round_limits(rounds: Rounds, taking: Work, machine: Machine) -> tuple[Need, ...]:
    """Return what the product limits in such rounds, at the rate at which reports can be taken."""
    rate = rounds.nodes * rounds.reports / taking.seconds(machine)
    at_a_time = rate * _REPORT_TRIPS * machine.latency
    return (
        Need(
            what="nodes of a round",
            value=rounds.nodes,
            most=MAX_POPULATION,
            remedy="Divide them between studies, each with a server of its own.",
        ),
        Need(
            what="connections of nodes at a time",
            value=at_a_time,
            most=MOST_CONNECTIONS if rounds.way.is_https else Limits().calls_nodes,
            remedy="Run more processes of the server, with PostgreSQL.",
        ),
    )
