"""Puts releases into a server's state as finished uploads do, and perturbs them."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import spec_with
from tests.protocol.killing_launcher import wrapped
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.release.table_spec import TableSpec
from veiltab.server.records.store import ServerStore
from veiltab.server.release import perturbation
from veiltab.server.release.perturbation import perturb_release, published_parts

AHEAD = int(time.time()) + 30 * 86_400
"""A deadline that the server accepts, the same in every spec of a run: it lies ahead, and not too far."""


def spec_ahead(**changes: Any) -> TableSpec:  # noqa: ANN401 - any field of a spec
    return spec_with(**{"deadline": AHEAD} | changes)


def complete(store: ServerStore, spec: TableSpec, *columns: Symbols) -> None:
    """Put the ciphertext of a release in its place, as finished uploads do."""
    store.open_session(spec)
    store.folder(spec.release_id).ciphertext.mkdir(parents=True, exist_ok=True)
    for column, symbols in zip(spec.columns, columns, strict=True):
        assert symbols.dtype == symbol_dtype(column.size)
        lease = store.leases.take(f"{spec.release_id}/{column.attribute}")
        store.folder(spec.release_id).column(column.attribute, lease.fence).write_bytes(symbols.tobytes())
        digest = hashlib.sha256(symbols.tobytes()).digest()
        store.complete_columns(spec.release_id, {column.attribute: (digest, lease)})


def perturb(store: ServerStore, spec: TableSpec) -> None:
    """Perturb a release as the process whose turn it is."""
    lease = store.leases.take(spec.release_id)
    try:
        perturb_release(store, store.session(spec.release_id), lease)
    finally:
        store.leases.give_back(lease)


def published_by(store: ServerStore, release_id: str) -> dict[str, bytes]:
    """Return the published columns of a release, and the places if the server samples, by name."""
    session = store.session(release_id)
    parts = published_parts(store.published_file(session), session.spec)
    return {name: part.tobytes() for name, part in parts.items()}


STEPS: tuple[tuple[Any, str], ...] = (
    (Path, "rmdir"),
    (os, "fsync"),
    (perturbation, "perturb_chunk"),
    (perturbation, "sync_folder"),
    (ServerStore, "publish"),
    (ServerStore, "delete_ciphertext"),
)
"""Of a perturbation: what holds each function, and its name."""


def tell(
    monkeypatch: pytest.MonkeyPatch, steps: Sequence[tuple[Any, str]], event: Callable[[str], None], *, after: bool
) -> None:
    """Tell the name of every step, before or after it is made."""
    for holder, name in steps:
        monkeypatch.setattr(holder, name, wrapped(getattr(holder, name), partial(event, name), after=after))
