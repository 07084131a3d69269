import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.conftest import refuses
from tests.server.publishing import STEPS, complete, perturb, published_by, spec_ahead, tell
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.symbols import CHUNK
from veiltab.common.errors import IntegrityError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.server.records.store import ServerStore
from veiltab.server.release.perturbation import PLACES, check_column, mapped_column

ID = "0" * 31 + "1"
COLUMNS = (Column(attribute="sex", owner="alice", size=2), Column(attribute="age", owner="bob", size=300))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ServerStore]:
    with closing(ServerStore(tmp_path)) as store:
        yield store


@pytest.fixture
def any_store(tmp_path: Path, database: str) -> Iterator[ServerStore]:
    with closing(ServerStore(tmp_path, database)) as store:
        yield store


def published(store: ServerStore, spec: TableSpec) -> list[NDArray[Any]]:
    parts = published_by(store, spec.release_id)
    return [np.frombuffer(parts[column.attribute], symbol_dtype(column.size)) for column in spec.columns]


def small(release_id: str = ID) -> tuple[TableSpec, list[Symbols]]:
    spec: TableSpec = spec_ahead(release_id=release_id, columns=COLUMNS, population=1000, sample=400)
    return spec, [(np.arange(400) % 2).astype(np.uint8), (np.arange(400) % 300).astype("<u2")]


# What comes out


def law(x: NDArray[np.int64], y: NDArray[np.int64], mechanism: GammaDiagonal) -> float:
    """Return the p-value of outputs y given inputs x, under A[y, x] = (1-r) 1{x=y} + r/K."""
    cells = mechanism.cells
    r = Fraction(mechanism.replacement, 2**64)
    seen = np.bincount(x * cells + y, minlength=cells * cells).reshape(cells, cells)
    matrix = np.full((cells, cells), float(r / cells)) + float(1 - r) * np.eye(cells)
    expected = seen.sum(axis=1, keepdims=True) * matrix
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, cells * (cells - 1)))


def test_the_output_has_the_law_of_the_mechanism(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """10^6 rows in four chunks; alpha 1e-4 each, one seed."""
    rows, sizes = 10**6, (2, 3)
    columns = tuple(Column(attribute=f"a{size}", owner="alice", size=size) for size in sizes)
    mechanism = GammaDiagonal.from_gamma(6, Fraction(5))
    spec = spec_ahead(
        columns=columns, population=10**7, sample=rows, server_replacement=mechanism.replacement, epsilon=Decimal("0.4")
    )
    cells = np.random.default_rng(8).choice(6, rows, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    cells[CHUNK : 2 * CHUNK] = cells[:CHUNK]
    complete(store, spec, (cells // 3).astype(np.uint8), (cells % 3).astype(np.uint8))
    monkeypatch.setattr("veiltab.server.records.store.noise_secret", lambda *_: bytes(range(32)))
    perturb(store, spec)
    first, second = published(store, spec)
    noisy = first.astype(np.int64) * 3 + second
    assert law(cells, noisy, mechanism) > 1e-4
    assert law(cells[-1000:], noisy[-1000:], mechanism) > 1e-4
    # A mechanism that is off by 2% of its gamma would be seen.
    for gamma in (Fraction(51, 10), Fraction(49, 10)):
        assert law(cells, noisy, GammaDiagonal.from_gamma(6, gamma)) < 1e-4
    # Chunks draw their own noise: two chunks of the same rows agree no more than two independent draws.
    r = float(Fraction(mechanism.replacement, 2**64))
    agree = (1 - r) ** 2 + (2 * r * (1 - r) + r * r) / 6
    same = int((noisy[:CHUNK] == noisy[CHUNK : 2 * CHUNK]).sum())
    assert stats.binomtest(same, CHUNK, agree).pvalue > 1e-4


def test_a_row_is_replaced_as_a_whole_and_otherwise_kept(store: ServerStore) -> None:
    spec = spec_ahead(columns=COLUMNS, population=10**7, sample=50_000, epsilon=Decimal("1.4"))
    retention = float(spec.mechanism.retention)
    assert 0.05 < retention < 0.95
    sex, age = np.zeros(50_000, np.uint8), np.full(50_000, 299, "<u2")
    complete(store, spec, sex, age)
    perturb(store, spec)
    noisy_sex, noisy_age = published(store, spec)
    kept = noisy_age == 299
    # alpha 1e-6: retention + r/300; and of the rows whose age was replaced, half have the other sex.
    expected = retention + (1 - retention) / 300
    assert stats.binomtest(int(kept.sum()), 50_000, expected).pvalue > 1e-6
    replaced = int((~kept).sum())
    assert stats.binomtest(int(noisy_sex[~kept].sum()), replaced, 0.5).pvalue > 1e-6


def sampled_by_the_server(release_id: str = ID) -> tuple[TableSpec, list[Symbols]]:
    spec: TableSpec = spec_ahead(
        release_id=release_id, columns=COLUMNS, population=1000, sample=400, sampling=Sampling.SERVER
    )
    return spec, [(np.arange(1000) % 2).astype(np.uint8), (np.arange(1000) % 300).astype("<u2")]


def test_every_release_has_a_sample_of_its_own(store: ServerStore) -> None:
    drawn = []
    for number in (1, 2):
        spec, columns = sampled_by_the_server(f"{number:032x}")
        complete(store, spec, *columns)
        perturb(store, spec)
        places = np.frombuffer(published_by(store, spec.release_id)[PLACES], "<i8")
        assert (len(places), len(set(places.tolist())), int(places.min()) >= 0) == (400, 400, True)
        assert int(places.max()) < 1000
        assert np.all(np.diff(places) > 0)
        drawn.append(places.tolist())
    assert drawn[0] != drawn[1]


def test_known_answers_of_noise_and_places(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One noise secret gives the same publication in another year, as a copy of the state must."""
    monkeypatch.setattr("veiltab.server.records.store.noise_secret", lambda *_: bytes(range(32)))
    spec, columns = sampled_by_the_server()
    complete(store, spec, *columns)
    perturb(store, spec)
    parts = published_by(store, ID)
    assert np.frombuffer(parts[PLACES], "<i8")[:8].tolist() == [1, 2, 4, 5, 6, 8, 9, 11]
    assert np.frombuffer(parts["age"], "<u2")[:8].tolist() == [185, 116, 207, 134, 27, 100, 284, 271]
    digests = [hashlib.sha256(parts[name]).hexdigest()[:16] for name in (PLACES, "sex", "age")]
    assert digests == ["f3b2e44f9e7536e4", "e08e61f4e5bd1c6a", "32cfe039d88b508f"]


@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_canaries_are_rows_like_others(store: ServerStore, sampling: Sampling) -> None:
    """The server takes c rows more; it publishes them too, or m of all where it samples."""
    spec = spec_ahead(columns=COLUMNS, population=1000, sample=400, canaries=200, sampling=sampling)
    rows = 1200 if sampling is Sampling.SERVER else 600
    symbols = np.arange(rows)
    complete(store, spec, (symbols % 2).astype(np.uint8), (symbols % 300).astype("<u2"))
    perturb(store, spec)
    parts = published_by(store, ID)
    assert len(parts["age"]) == 2 * len(parts["sex"]) == (800 if rows == 1200 else 1200)
    if sampling is Sampling.SERVER:
        places = np.frombuffer(parts[PLACES], "<i8")
        assert len(set(places.tolist())) == 400
        assert places.max() > 1000, "only a chance of 6e-34 leaves all places of the last 200 rows out"


def test_the_digests_of_what_is_published_are_recorded_with_it(any_store: ServerStore) -> None:
    store, (spec, columns) = any_store, small()
    complete(store, spec, *columns)
    assert store.session(ID).digests == {}
    noise = derive(store.noise_secret(spec), "noise")
    perturb(store, spec)
    salt = store.session(ID).salt
    assert salt != noise, "the desk reads the salt"
    assert len(set(salt)) > 8, "a curator could test guesses of its published column with a plain digest"
    ciphertext = {hashlib.sha256(salt + column.tobytes()).digest() for column in columns}
    served = dict(zip(("sex", "age"), published(store, spec), strict=True))
    expected = {attribute: hashlib.sha256(salt + column.tobytes()).digest() for attribute, column in served.items()}
    assert store.session(ID).digests == expected
    assert ciphertext.isdisjoint(expected.values())


# Once, ever


def test_a_second_run_is_refused_and_leaves_the_publication_alone(any_store: ServerStore) -> None:
    store, (spec, columns) = any_store, small()
    complete(store, spec, *columns)
    perturb(store, spec)
    before = [column.tobytes() for column in published(store, spec)]
    with refuses(IntegrityError, where="release 00000000000000000000000000000001"):
        perturb(store, spec)
    assert [column.tobytes() for column in published(store, spec)] == before


def test_a_release_that_ended_is_not_perturbed(store: ServerStore) -> None:
    spec, columns = small()
    complete(store, spec, *columns)
    store.end(store.session(ID), ReleaseState.FAILED, "why", store.leases.take(ID))
    with pytest.raises(IntegrityError):
        perturb(store, spec)
    assert not store.published_file(store.session(ID)).exists()


class Crash(BaseException):
    """The process is gone."""


def run_until(monkeypatch: pytest.MonkeyPatch, crash_at: int, work: Callable[[], None], *, after: bool) -> str:
    """Run the work, crash just before or after the call of that number of all the steps, and name it."""
    calls: list[str] = []

    def event(name: str) -> None:
        calls.append(name)
        if len(calls) == crash_at:
            raise Crash

    with monkeypatch.context() as broken:
        tell(broken, STEPS, event, after=after)
        try:
            work()
        except Crash:
            return calls[-1]
    return ""


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_step_ends_in_one_publication(
    any_store: ServerStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, after: bool
) -> None:
    store, crashed_at = any_store, set[str]()
    for number in range(1, 100):
        spec, columns = small(f"{number:032x}")
        complete(store, spec, *columns)
        step = run_until(monkeypatch, number, lambda spec=spec: perturb(store, spec), after=after)  # type: ignore[misc]
        # A new process takes up what is perturbing, and deletes the ciphertext of what is published.
        served_before: list[bytes] = []
        if store.session(spec.release_id).state is ReleaseState.PERTURBING:
            assert store.folder(spec.release_id).ciphertext.exists()
            perturb(store, spec)
        else:
            served_before = [column.tobytes() for column in published(store, spec)]
            store.delete_ciphertext(spec.release_id)
        assert store.session(spec.release_id).state is ReleaseState.READY
        served = [column.tobytes() for column in published(store, spec)]
        assert served_before in ([], served)
        assert served != [column.tobytes() for column in columns]
        left = {path.name for path in (tmp_path / "releases" / spec.release_id).iterdir()}
        assert left == {store.published_file(store.session(spec.release_id)).name}
        assert store.session(spec.release_id).perturbation_seconds > 0
        if not step:
            break
        crashed_at.add(step)
    assert crashed_at == {name for _, name in STEPS}


def test_everything_is_durable_before_the_next_step(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, columns = small()
    complete(store, spec, *columns)
    steps: list[str] = []
    fsync, publish, delete = os.fsync, store.publish, store.delete_ciphertext

    def recorded(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:  # noqa: ANN401 - any step
            steps.append(f"{name} {Path(f'/proc/self/fd/{args[0]}').resolve().name}" if name == "sync" else name)
            return step(*args)

        return run

    monkeypatch.setattr(os, "fsync", recorded("sync", fsync))
    monkeypatch.setattr(store, "publish", recorded("publish", publish))
    monkeypatch.setattr(store, "delete_ciphertext", recorded("delete", delete))
    perturb(store, spec)
    assert steps == ["sync published", f"sync {ID}", "publish", "delete"]


def interrupted(store: ServerStore, spec: TableSpec, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Perturb up to the moment before the publication; return what would have been published, places included."""

    with monkeypatch.context() as broken:
        broken.setattr(store, "publish", Mock(side_effect=Crash))
        with pytest.raises(Crash):
            perturb(store, spec)
    assert store.session(spec.release_id).state is ReleaseState.PERTURBING  # so nothing serves it
    (path,) = store.folder(spec.release_id).path.glob("published*")  # the one that lies there
    return path.read_bytes()


@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_a_copy_of_the_state_publishes_the_same_noise(
    any_store: ServerStore, monkeypatch: pytest.MonkeyPatch, sampling: Sampling
) -> None:
    store = any_store
    spec = spec_ahead(columns=COLUMNS, population=1000, sample=400, sampling=sampling)
    rows = spec.uploaded_rows
    complete(store, spec, (np.arange(rows) % 2).astype(np.uint8), (np.arange(rows) % 300).astype("<u2"))
    first = interrupted(store, spec, monkeypatch)
    assert interrupted(store, spec, monkeypatch) == first
    perturb(store, spec)
    parts = published_by(store, spec.release_id)
    assert b"".join(parts.values()) == first
    assert len(parts) == len(COLUMNS) + (sampling is Sampling.SERVER)


def test_other_ciphertext_under_the_same_release_gets_other_noise(
    store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, columns = small()
    complete(store, spec, *columns)
    first = interrupted(store, spec, monkeypatch)
    store.connection.execute("UPDATE complete_column SET digest = ? WHERE attribute = 'age'", [b"another"])
    assert interrupted(store, spec, monkeypatch) != first


def test_the_noise_secret_is_forgotten_with_the_publication_and_with_the_end(any_store: ServerStore) -> None:
    store = any_store
    for number, end in ((1, False), (2, True)):
        spec, columns = small(f"{number:032x}")
        complete(store, spec, *columns)
        assert len(store.noise_secret(spec)) == 32
        if end:
            store.end(store.session(spec.release_id), ReleaseState.FAILED, "why", store.leases.take(spec.release_id))
        else:
            perturb(store, spec)
        with pytest.raises(IntegrityError, match="no noise secret"):
            store.noise_secret(spec)


def test_secrets_of_releases_differ(store: ServerStore) -> None:
    found = set()
    for number in range(1, 5):
        spec, columns = small(f"{number:032x}")
        complete(store, spec, *columns)
        row = store.connection.execute("SELECT noise FROM session WHERE id = ?", [spec.release_id]).fetchone()
        found.add(bytes(row["noise"]))
        store.open_session(spec)
        again = store.connection.execute("SELECT noise FROM session WHERE id = ?", [spec.release_id]).fetchone()
        assert bytes(again["noise"]) == bytes(row["noise"])
    assert len(found) == 4


# Damage


def test_a_column_of_another_length_is_refused(store: ServerStore) -> None:
    spec, columns = small()
    complete(store, spec, *columns)
    path = store.folder(ID).ciphertext / "age"
    for length in (799, 0):
        path.write_bytes(bytes(length))
        with refuses(IntegrityError, where="attribute age"):
            perturb(store, spec)
        with refuses(IntegrityError, where="attribute age"):
            check(store, spec, "age")
    assert store.session(ID).state is ReleaseState.PERTURBING
    assert not store.published_file(store.session(ID)).exists()


def check(store: ServerStore, spec: TableSpec, attribute: str) -> None:
    column = spec.column(attribute)
    check_column(mapped_column(store.folder(ID).ciphertext / attribute, 0, column, spec.uploaded_rows), column)


@pytest.mark.parametrize(("attribute", "symbol"), [("sex", 2), ("sex", 255), ("age", 300), ("age", 65_535)])
@pytest.mark.parametrize("place", [0, CHUNK, CHUNK + 9])
def test_a_symbol_outside_its_alphabet_is_found_wherever_it_is(
    store: ServerStore, attribute: str, symbol: int, place: int
) -> None:
    rows = CHUNK + 10
    spec = spec_ahead(columns=COLUMNS, population=rows, sample=rows, epsilon=Decimal("0.1"))
    columns: list[Symbols] = [np.full(rows, 1, np.uint8), np.full(rows, 299, "<u2")]
    complete(store, spec, *columns)
    check(store, spec, "sex")
    check(store, spec, "age")
    index = 0 if attribute == "sex" else 1
    columns[index][place] = symbol
    (store.folder(ID).ciphertext / attribute).write_bytes(columns[index].tobytes())
    with pytest.raises(IntegrityError, match=r"1 of .* symbols lie outside"):
        check(store, spec, attribute)
    with pytest.raises(IntegrityError, match=r"1 of .* symbols lie outside"):
        perturb(store, spec)
