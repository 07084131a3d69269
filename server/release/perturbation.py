"""Perturbs a complete release: ciphertext columns in, noisy ciphertext columns out, once.

The output is written to one file, which is synced; only then is the release marked published, and only then is the
ciphertext deleted. An interrupted run starts again and draws the same noise (see
veiltab.server.records.noise), so a release has only one perturbation. A run whose lease was lost publishes nothing and
deletes its output.
"""

import hashlib
import os
import time
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import perturb_chunk
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.sampling import ascending_pieces
from veiltab.common.core.symbols import add_holders, check_symbols, row_slices
from veiltab.common.errors import IntegrityError, NotFoundError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.release.table_spec import PLACE_BYTES, Column, TableSpec
from veiltab.common.storage.files import created_private, named_in_errors, sync_folder
from veiltab.common.storage.mapped import mapped_array
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.sharing.leases import Lease, LostLeaseError

PLACES = ".places"
"""Name of the sampled places beside the published columns; no attribute has such a name."""


def perturb_release(store: ServerStore, session: Session, lease: Lease, stage: Stage | None = None) -> None:
    """Perturb, publish and delete the ciphertext of a release whose columns are all complete.

    Args:
        stage: says how far it is, if anybody asks.

    Raises:
        IntegrityError: a column is not what it was checked to be; or the release was published before.
        LostLeaseError: another process took over; nothing is published.

    Source: Lin, Wang, Rane, Section III-A and Lemma 3.1: PRAM on ciphertext is PRAM on the data.
    """
    try:
        with named_in_errors(store.folder(session.spec.release_id).path):
            _perturb(store, session, lease, stage or Stage())
    except (LostLeaseError, FileNotFoundError):
        # A successor deletes the files of others, and the ciphertext at the end.
        try:
            store.check_current(lease)
        except LostLeaseError:
            # A second perturbation of the same rows must not be kept beside the published one.
            store.folder(session.spec.release_id).delete_outputs_through(lease.fence)
            raise
        raise


def _perturb(store: ServerStore, session: Session, lease: Lease, stage: Stage) -> None:
    began, spec = time.monotonic(), session.published().spec
    folder = store.folder(spec.release_id)
    # The output of an earlier run was never served: the release is not marked published.
    folder.delete_outputs_through(lease.fence)
    published = folder.published(lease.fence)
    size = sum(column.byte_length(spec.published_rows) for column in spec.columns)
    with step("perturb", release_id=spec.release_id, size=size):
        salt, digests = _write_columns(store, spec, published, stage)
    with step("publish", release_id=spec.release_id):
        sync_folder(published.parent)
        store.publish(spec.release_id, salt, digests, time.monotonic() - began, lease)
        store.delete_ciphertext(spec.release_id)


def _write_columns(store: ServerStore, spec: TableSpec, path: Path, stage: Stage) -> tuple[bytes, Mapping[str, bytes]]:
    """Write the perturbed columns; return a salt, and attribute -> SHA-256 of it and what was written."""
    files_held = store.complete_files(spec.release_id)
    sources = [
        [mapped_column(*files_held[part], column, spec.uploaded_rows) for part in column.parts]
        for column in spec.columns
    ]
    sizes = [column.size for column in spec.columns]
    secret, layout = store.noise_secret(spec), layout_of(spec)
    stream = CipherStream(derive(secret, "noise"))
    salt = derive(secret, "salt")
    digests = {column.attribute: hashlib.sha256(salt) for column in spec.columns}
    with (
        open(path, "xb", opener=created_private) as file,
        stage.of("perturbing columns", spec.published_rows) as progress,
    ):
        places = _sampled_places(spec, derive(secret, "places"), file) if spec.sampling.is_by_server else None
        for number, rows in enumerate(row_slices(spec.published_rows)):
            here = rows if places is None else places[rows]
            inputs = [
                add_holders([part[here] for part in source], size) for source, size in zip(sources, sizes, strict=True)
            ]
            outputs = [np.empty_like(part) for part in inputs]
            perturb_chunk(inputs, sizes, spec.server_mechanism, stream, outputs, chunk=number)
            for (name, digest), part in zip(digests.items(), outputs, strict=True):
                file.seek(layout[name].start + rows.start * part.itemsize)
                file.write(part.data)
                digest.update(part.data)
            progress.advance(rows.stop - rows.start)
        file.flush()
        os.fsync(file.fileno())
    return salt, {name: digest.digest() for name, digest in digests.items()}


def _sampled_places(spec: TableSpec, key: bytes, file: BinaryIO) -> NDArray[np.int64]:
    """Draw the sample of a release with sampling at the server, among all rows; the researcher gets its places too.

    Only the curators know the order of the rows, so the places do not reveal the sampled respondents.
    """
    pieces = ascending_pieces(spec.uploaded_rows, spec.published_rows, key)
    file.writelines(places.astype("<i8", copy=False).data for places in pieces)
    file.flush()
    return mapped_array(Path(file.name), "<i8")


def layout_of(spec: TableSpec) -> Mapping[str, slice]:
    """Return where the published columns of a release lie in their file, behind the places if the server samples."""
    lengths = {PLACES: PLACE_BYTES * spec.published_rows} if spec.sampling.is_by_server else {}
    lengths |= {column.attribute: column.byte_length(spec.published_rows) for column in spec.columns}
    return {
        name: slice(end - length, end)
        for (name, length), end in zip(lengths.items(), accumulate(lengths.values()), strict=True)
    }


def published_parts(path: Path, spec: TableSpec) -> Mapping[str, NDArray[np.uint8]]:
    """Return the bytes of each published column by its attribute, and of the places if the server samples.

    Raises:
        NotFoundError: there is no such file.
        IntegrityError: it has another length.
    """
    try:
        whole, layout = mapped_array(path, np.uint8), layout_of(spec)
    except FileNotFoundError:
        raise NotFoundError("the published columns are not here", where=f"release {spec.release_id}") from None
    if len(whole) != max(part.stop for part in layout.values()):
        problem = "the published columns have another length than their release"
        raise IntegrityError(problem, where=f"release {spec.release_id}")
    return {name: whole[part] for name, part in layout.items()}


def mapped_column(path: Path, start: int, column: Column, rows: int) -> Symbols:
    """Return the symbols of a column that begins at some byte of a file, memory-mapped.

    Raises:
        FileNotFoundError: there is no such file.
        IntegrityError: it has fewer rows.
    """
    end = start + column.byte_length(rows)
    if path.stat().st_size < end:
        raise IntegrityError("a complete column is shorter than its release", where=f"attribute {column.attribute}")
    symbols: Symbols = mapped_array(path, np.uint8)[start:end].view(symbol_dtype(column.size))
    return symbols


def check_column(symbols: Symbols, column: Column) -> None:
    """Refuse a part of a column with a symbol outside its alphabet.

    Raises:
        IntegrityError: says how many symbols are outside, never which.
    """
    for rows in row_slices(len(symbols)):
        check_symbols(symbols[rows], column.size)
