"""Measures what linking tables costs on this machine: each pass by itself, over made rows, with the product's code.

The passes run one after the other in this process. What they take is what a release takes, but for what does not depend
on its rows.
"""

import asyncio
import hashlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from benchmarks.costs.files import measured_cut, measured_page
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.randomness import KEY_BYTES, CipherStream
from veiltab.common.core.sampling import sample_indices, uniform_indices
from veiltab.common.core.symbols import check_symbols
from veiltab.common.release.modes import Pad
from veiltab.common.release.table_spec import Column
from veiltab.common.rpc.chunks import file_chunks, streamed
from veiltab.common.rpc.parties.identity import Role, load_identity
from veiltab.common.rpc.peer import Peer
from veiltab.common.rpc.server import build_server
from veiltab.common.storage.run_files import RunFiles, run_in
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.common.study.toml_text import toml_text
from veiltab.common.tasks.engine import InProcess
from veiltab.curator.alignment.exchange import own_tokens
from veiltab.curator.alignment.intersection import AlignedTable, Joined, Lacking, PopulationDigest
from veiltab.curator.alignment.token_order import TokenOrder
from veiltab.curator.columns.draw_tasks import DrawnSample
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, PlainColumn
from veiltab.curator.columns.shared_sample import sample_check
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table import Table
from veiltab.curator.table.table_reading import load_table
from veiltab.deploy.pki.certificates import init_pki
from veiltab.researcher.receiving.decryption import EncryptedColumn, PublishedRows, count_rows, digest_of
from veiltab.v1.curator_peer_pb2 import FetchTokensRequest, FetchTokensResponse
from veiltab.v1.curator_peer_pb2_grpc import (
    CuratorPeerServiceServicer,
    CuratorPeerServiceStub,
    add_CuratorPeerServiceServicer_to_server,
)

_ROWS = 2**19
_FEW, _MANY = "few", "many"
_ATTRIBUTES = {_FEW: 1, _MANY: 9}
"""Curator -> attributes; the difference is what attributes cost."""

_DRAWN = f"{_FEW}0"
"""The attribute of a release."""

_CATEGORIES = ("a", "b", "c")

_SHARES = (1, 16)
"""Samples of everybody, and of a sixteenth; the difference is what a sampled row costs."""

_COLUMNS = 4
"""Columns of a release, of which each curator has half."""

_MECHANISM = GammaDiagonal.from_gamma(len(_CATEGORIES) ** _COLUMNS, Fraction(10))
_KEY = bytes(KEY_BYTES)
_NO_PLACES = CanaryPlaces.of(_KEY, rows=_ROWS, canaries=0)
_NOISE = CuratorsNoise(mechanism=_MECHANISM, coin_key=_KEY, canary_key=_KEY, places=_NO_PLACES)

_REPEATS = 5
_STREAMED = 8
"""Times that the tokens go over a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCosts:
    """What the passes over linked tables cost: ns of CPU a row, and of a symbol where the name says so.

    Args:
        load: reading, normalising and keeping an id.
        order: a row's token, and its way into the order of all tokens.
        stream: of a byte at either end, with digest, TLS, gRPC, and a file at one's own end.
        search: looking for a peer's token among one's own.
        keep: writing and digesting a common respondent.
        draw: the priority of a respondent.
        pick: putting a sampled row in its secret order.
        encrypt: noise, pad and digest of a sampled symbol.
        perturb: checking a symbol, and the server's noise.
        count: digest, decryption and tabulation of a symbol.
        page: of a byte that is written to a page of memory that is new to the machine, as all of a large table's are.
        cut: microseconds to open one of the files of which a section is read.
    """

    load: float
    load_symbol: float
    order: float
    order_symbol: float
    stream: float
    search: float
    keep: float
    keep_symbol: float
    draw: float
    pick: float
    encrypt: float
    perturb: float
    count: float
    page: float
    cut: float


def measured_tables() -> TableCosts:
    """Return what linking tables costs here."""
    study = _study()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page, cut = measured_page(folder), measured_cut(folder)  # first, while pages are new
        few, many = (_alignment(folder / curator, study, curator) for curator in _ATTRIBUTES)
        everybody, some = (_draw(folder, few.table, _ROWS // share) for share in _SHARES)
        encrypted = _encrypt(folder, few.table)
        stream = asyncio.run(_stream(folder, study, own_tokens(few.table.folder)))
        perturbed, counted = _perturb(), _count(folder)
    attributes = _ATTRIBUTES[_MANY] - _ATTRIBUTES[_FEW]
    load_symbol, order_symbol = (many.load - few.load) / attributes, (many.order - few.order) / attributes
    search, keep_symbol = few.joins[1] - few.joins[0], (many.joins[0] - few.joins[0]) / attributes
    pick = (everybody - some) / (1 - _SHARES[0] / _SHARES[1])
    return TableCosts(
        load=_positive(few.load - load_symbol),
        load_symbol=_positive(load_symbol),
        order=_positive(few.order - order_symbol),
        order_symbol=_positive(order_symbol),
        stream=stream,
        search=_positive(search),
        keep=_positive(few.joins[0] - keep_symbol),
        keep_symbol=_positive(keep_symbol),
        draw=_positive(everybody - pick),
        pick=_positive(pick),
        encrypt=encrypted,
        perturb=perturbed,
        count=counted,
        page=page,
        cut=cut,
    )


def _positive(difference: float) -> float:
    """Return a difference of two figures, which is more than nothing whatever else the machine did."""
    return max(difference, 0.1)


def _cpu(work: Callable[[], object]) -> float:
    """Return the least CPU time of some runs after a first one, nanoseconds a row."""
    work()
    seconds = []
    for _ in range(_REPEATS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return 1e9 * min(seconds) / _ROWS


def _study() -> Study:
    """Return a study of two curators."""
    endpoints = (f"localhost:{port}" for port in range(7400, 7500))
    text = toml_text(
        {
            "study": {"id": "scale", "title": "Scale", "hub": _FEW},
            "budget": {"epsilon": 1},
            "server": {"name": "cloud", "endpoint": next(endpoints)},
            "researcher": [{"name": "rosa", "endpoint": next(endpoints)}],
            "curator": [
                {
                    "name": curator,
                    "endpoint": next(endpoints),
                    "id_columns": ["id"],
                    "normalise": ["strip", "casefold", "nfc"],
                }
                for curator in _ATTRIBUTES
            ],
            "attribute": [
                {"name": f"{curator}{number}", "owner": curator, "categories": list(_CATEGORIES)}
                for curator, count in _ATTRIBUTES.items()
                for number in range(count)
            ],
        }
    )
    return study_from_bytes(text.encode(), "study.toml")


def _made_table(path: Path, curator: str) -> None:
    """Write a table."""
    columns = {"id": pa.array([f"id-{number:010d}" for number in sample_indices(_ROWS, _ROWS, _KEY)])}
    for number in range(_ATTRIBUTES[curator]):
        codes = _codes(number).astype(np.int8)
        columns[f"{curator}{number}"] = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(_CATEGORIES))
    pa.parquet.write_table(pa.table(columns), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aligned:
    """What the passes of an alignment cost a curator, nanoseconds a row, the last one at the hub and at a spoke."""

    load: float
    order: float
    joins: tuple[float, ...]
    table: AlignedTable


def _alignment(folder: Path, study: Study, curator: str) -> _Aligned:
    """Measure the passes of an alignment of curators who have the same people."""
    folder.mkdir()
    path, alignment = folder / "table.parquet", folder / "alignment"
    alignment.mkdir()
    _made_table(path, curator)
    with run_in(folder) as run:
        table = load_table(path, study, curator, run=run)
        load = _cpu(lambda: _loaded(folder, path, study, curator))
        order = _cpu(lambda: _ordered(run, table, alignment))
        ordered, aligned = _ordered(run, table, alignment), AlignedTable(alignment)
        joins = tuple(_cpu(partial(_join, ordered, aligned, table, is_hub=one)) for one in (True, False))
    return _Aligned(load=load, order=order, joins=joins, table=aligned)


def _loaded(folder: Path, path: Path, study: Study, curator: str) -> None:
    with run_in(folder / "loaded") as run:
        load_table(path, study, curator, run=run)


def _ordered(run: RunFiles, table: Table, alignment: Path) -> TokenOrder:
    order = TokenOrder(table.respondents, Execution(run=run, engine=InProcess()))
    order.write(_KEY, own_tokens(alignment))
    return order


def _join(ordered: TokenOrder, aligned: AlignedTable, table: Table, *, is_hub: bool) -> None:
    lacking = {name: Lacking(categories=1, parts=1) for name in table.respondents.types}
    tokens = own_tokens(aligned.folder)
    rows = PopulationDigest(_KEY).of(ordered.rows(None if is_hub else tokens, lacking, Joined()))
    aligned.write(rows, table.respondents.types, tokens)


def _draw(folder: Path, aligned: AlignedTable, sample: int) -> float:
    """Measure the secret order of a sample, and the digest that curators compare."""
    with run_in(folder) as run:
        return _cpu(lambda: sample_check(_KEY, _drawn(run, aligned, sample), _NOISE))


def _drawn(run: RunFiles, aligned: AlignedTable, sample: int) -> DrawnSample:
    return DrawnSample(aligned, sample, _KEY, [_DRAWN], Execution(run=run, engine=InProcess()))


def _encrypt(folder: Path, aligned: AlignedTable) -> float:
    """Measure noise, pad and digest of a column of everybody, in the secret order."""
    store, releases = CuratorStore(folder / "curator.sqlite"), count()
    with closing(store), run_in(folder) as run:
        column = _drawn(run, aligned, _ROWS).column(aligned, _DRAWN)

        def encrypt() -> None:
            encryption = ColumnEncryption(store, folder, f"release {next(releases)}")
            encryption.encrypt(
                [PlainColumn(attribute=_DRAWN, symbols=column, size=len(_CATEGORIES))], Pad.CHACHA20, _NOISE
            )

        return _cpu(encrypt)


class _Tokens(CuratorPeerServiceServicer):
    """Sends a file of tokens to whoever asks, as a curator does."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def FetchTokens(  # noqa: N802 - the protocol's name
        self, request: FetchTokensRequest, context: object
    ) -> AsyncIterator[FetchTokensResponse]:
        del context
        chunks = file_chunks(self._path, request.offset, has_digests=False)
        async for total, chunk in streamed(chunks, self._path.stat().st_size, 0):
            yield FetchTokensResponse(total=total, chunk=chunk)


async def _stream(folder: Path, study: Study, tokens: Path) -> float:
    """Measure a stream over TLS, with its files: nanoseconds a byte at either end."""
    init_pki(study, folder / "pki")
    few, many = (
        load_identity(folder / "pki" / f"{Role.CURATOR.value}-{curator}", Role.CURATOR, curator)
        for curator in _ATTRIBUTES
    )
    services = [partial(add_CuratorPeerServiceServicer_to_server, _Tokens(tokens))]  # type: ignore[abstract] # nothing else is asked for
    async with build_server(few, [many.party], services, "localhost:0") as server:
        peer = Peer.at(f"localhost:{server.port}", few.party, many, CuratorPeerServiceStub)

        async def fetch() -> None:
            with (folder / "received").open("wb") as file:
                async for data in peer.stream(peer.stub.FetchTokens, FetchTokensRequest(), has_digests=False):
                    file.write(data)

        await fetch()  # the first one opens the connection
        began = time.process_time()
        for _ in range(_STREAMED):
            await fetch()
        spent = time.process_time() - began
        await peer.close()
    return 1e9 * spent / (2 * _STREAMED * tokens.stat().st_size)


def _symbols() -> list[Symbols]:
    return [_codes(number).astype(np.uint8) for number in range(_COLUMNS)]


def _codes(column: int) -> NDArray[np.int64]:
    """Return the symbols of a column, the same each time."""
    return uniform_indices(len(_CATEGORIES), _ROWS, bytes([column]) * KEY_BYTES)


def _perturb() -> float:
    """Measure the server's passes over a symbol: checking it, its noise, and the digests of what came and what goes."""
    columns, sizes = _symbols(), [len(_CATEGORIES)] * _COLUMNS
    noisy: list[Symbols] = [np.empty_like(column) for column in columns]

    def pass_over() -> None:
        for column, size in zip(columns, sizes, strict=True):
            check_symbols(column, size)
            hashlib.sha256(column.data)
        perturb(columns, sizes, _MECHANISM, CipherStream(_KEY), noisy)
        for column in noisy:
            hashlib.sha256(column.data)

    return _cpu(pass_over) / _COLUMNS


def _count(folder: Path) -> float:
    """Measure the researcher's passes over a symbol: its digest, decryption and tabulation."""
    columns = []
    for number, symbols in enumerate(_symbols()):
        path = folder / f"noisy-{number}"
        path.write_bytes(symbols.tobytes())
        column = Column(attribute=f"a{number}", owner=_FEW, size=len(_CATEGORIES))
        columns.append(EncryptedColumn(column=column, noisy=path, keys=(_KEY,)))
    rows = PublishedRows(uploaded=_ROWS, canaries=_NO_PLACES)

    def pass_over() -> None:
        for column in columns:
            digest_of(column.noisy, b"")
        count_rows(columns, rows)

    return _cpu(pass_over) / _COLUMNS
