"""What studies of any size take, as tables of Markdown: CPU from unit costs, bytes from the formats of files.

A release is a list of stages, each of what parties do at the same time. A stage lasts as long as its slowest party, and
a party as long as its slowest resource: its cores, its link or its disk.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from benchmarks.costs.processor import machine_name
from benchmarks.costs.reports import ReportCosts, Way
from benchmarks.costs.tables import TableCosts
from veiltab.common.storage.partitions import section_records
from veiltab.curator.alignment.disk_needs import ROW_BYTES, alignment_bytes
from veiltab.curator.table.partition_files import SPREAD
from veiltab.curator.table.tokens import TOKEN_LENGTH

_CURATORS, _ATTRIBUTES = 2, 2
_COLUMNS = _CURATORS * _ATTRIBUTES
_SIZES = tuple(10**power for power in range(5, 10))

_CORES = 8
_CACHE = 15e9
"""Bytes of each party's memory that cache its files."""

_LINK, _DISK = 1e9 / 8, 500e6
"""Bytes a second of each party's link, each way, and of its disk."""

_ID = 13
"""Bytes of an id that a curator keeps while it runs; where they differ, four more each have their number."""

_ROW = TOKEN_LENGTH + _ATTRIBUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What one party does in a stage, of each row: ns of CPU that cores share or not, bytes on its link and disk."""

    party: str
    parallel: float = 0.0
    serial: float = 0.0
    link: float = 0.0
    written: float = 0.0
    read: float = 0.0

    def cpu(self, page: float) -> float:
        """Return ns of CPU, with those of the pages that are written."""
        return self.parallel + self.serial + page * self.written

    def lasts(self, page: float, *, is_cached: bool) -> float:
        """Return seconds a row; what is cached is read from memory."""
        cores = self.cpu(page) - self.parallel * (1 - 1 / _CORES)
        moved = self.written + (0.0 if is_cached else self.read)
        return max(1e-9 * cores, self.link / _LINK, moved / _DISK)


_Stages = tuple[tuple[_Work, ...], ...]


def _alignment(costs: TableCosts, rows: int) -> _Stages:
    """Return the stages from the files of the tables to the rows of the hub, by tokens."""
    load, order, keep = (
        getattr(costs, name) + _ATTRIBUTES * getattr(costs, f"{name}_symbol") for name in ("load", "order", "keep")
    )
    tokens = TOKEN_LENGTH * (_CURATORS - 1)
    works = (
        _Work(party="curator", parallel=load, written=_ID + _ATTRIBUTES),
        _Work(
            party="curator",
            parallel=order + _cut(costs, rows),
            written=2 * _ROW,
            read=_ID + _ATTRIBUTES + _ROW,
        ),
        _Work(party="curator", serial=tokens * costs.stream, link=tokens, written=tokens, read=tokens),
        _Work(party="curator", parallel=costs.search + keep, written=_ROW, read=tokens + _ROW + TOKEN_LENGTH),
    )
    return tuple((work,) for work in works)


def _release(costs: TableCosts, rows: int) -> _Stages:
    """Return the stages from the draw of everybody to the counts."""
    draw = costs.draw + costs.pick + _cut(costs, rows)
    own, every, order = _ATTRIBUTES, _COLUMNS, 2 * ROW_BYTES
    encrypted = own * costs.encrypt
    sent, taken = own * costs.stream, every * costs.stream
    return (
        (_Work(party="curator", parallel=draw, written=order, read=TOKEN_LENGTH + order),),
        (_Work(party="curator", parallel=encrypted, written=own, read=own * (1 + ROW_BYTES)),),
        (
            _Work(party="curator", serial=sent, link=own, read=own),
            _Work(party="server", serial=taken, link=every, written=every, read=every),
        ),
        (_Work(party="server", serial=every * costs.perturb, written=every, read=every),),
        (
            _Work(party="server", serial=taken, link=every, read=every),
            _Work(party="researcher", serial=taken, link=every, written=every),
        ),
        (_Work(party="researcher", serial=every * costs.count, read=2 * every),),
    )


def _cut(costs: TableCosts, rows: int) -> float:
    """Return ns a row for opening the files of which a section is read: there are more of both, the more rows."""
    return 1e3 * costs.cut * rows / SPREAD / section_records(rows, _ROW)


def tables(costs: TableCosts, reports: Mapping[Way, ReportCosts]) -> str:
    """Return the tables of releases and of rounds."""
    return "\n".join([*_of_releases(costs), "", *_of_rounds(reports), "", f"Unit costs: {machine_name()}.", ""])


def _of_releases(costs: TableCosts) -> Iterator[str]:
    yield _row(
        *("respondents", "a curator: CPU", "sends", "disk", "server: CPU", "sends", "disk"),
        *("researcher: CPU", "alignment", "release"),
    )
    yield "|---" * 10 + "|"
    for rows in _SIZES:
        aligning, releasing = _alignment(costs, rows), _release(costs, rows)
        cpu = dict.fromkeys(("curator", "server", "researcher"), 0.0)
        for work in chain.from_iterable(aligning + releasing):
            cpu[work.party] += 1e-9 * rows * work.cpu(costs.page)
        sent = rows * (TOKEN_LENGTH * (_CURATORS - 1) + _ATTRIBUTES)
        types = [np.dtype(np.uint8)] * _ATTRIBUTES
        aligned = rows * (TOKEN_LENGTH + _ROW + 3 * ROW_BYTES + _ATTRIBUTES)
        disk = rows * (_ID + _ATTRIBUTES) + max(aligned, alignment_bytes(rows, types, _CURATORS))
        yield _row(
            *(f"{rows:,}", _time(cpu["curator"]), _bytes(sent), _bytes(disk)),
            *(_time(cpu["server"]), _bytes(rows * _COLUMNS), _bytes(2 * rows * _COLUMNS), _time(cpu["researcher"])),
            *(_time(rows * _lasts(stages, costs.page, is_cached=disk < _CACHE)) for stages in (aligning, releasing)),
        )


def _lasts(stages: _Stages, page: float, *, is_cached: bool) -> float:
    """Return seconds a row of stages that follow one another."""
    return sum(max(work.lasts(page, is_cached=is_cached) for work in stage) for stage in stages)


def _of_rounds(reports: Mapping[Way, ReportCosts]) -> Iterator[str]:
    yield _row("reports", *Way, "disk")
    yield "|---" * (2 + len(Way)) + "|"
    for count in _SIZES:
        yield _row(
            f"{count:,}",
            *(
                f"{_time(1e-6 * count * (of.report + of.enrol))}, {_bytes(count * (of.received + of.sent))}"
                for of in map(reports.__getitem__, Way)
            ),
            _bytes(count * reports[Way.HTTPS].token_bytes),
        )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _time(seconds: float) -> str:
    if seconds < 1:
        return "< 1 s"
    return _in_units(seconds, (("days", 172_800.0, 86_400.0), ("h", 7200.0, 3600.0), ("min", 120.0, 60.0)), "s")


def _bytes(size: float) -> str:
    return _in_units(size, (("TB", 1e12, 1e12), ("GB", 1e9, 1e9)), "MB", 1e6)


def _in_units(value: float, units: Iterable[tuple[str, float, float]], smallest: str, least: float = 1.0) -> str:
    """Return a value with two digits, or more before its point, in the first unit of which it has enough."""
    unit, factor = next(((name, factor) for name, enough, factor in units if value >= enough), (smallest, least))
    value /= factor
    return f"{value:,.0f} {unit}" if value >= 10 else f"{float(f'{value:.2g}'):g} {unit}"
