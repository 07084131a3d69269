import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.conftest import noise_with, refuses
from tests.worlds.columns import encrypt, read
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import decrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK
from veiltab.common.errors import ConflictError, IntegrityError
from veiltab.common.release.modes import Pad
from veiltab.common.storage.files import file_digest
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, PlainColumn
from veiltab.curator.records.store import CuratorStore

ID = "0" * 31 + "1"
ROWS = 300
BOTH = pytest.mark.parametrize("pad", Pad)
PLAIN = noise_with()
NOISE = noise_with(sample=ROWS, server_replacement=2**63, curator_replacement=2**63, canaries=40)
SYMBOLS: Symbols = (np.arange(ROWS) * 7 % 5).astype(np.uint8)


@pytest.fixture
def encryption(store: CuratorStore, tmp_path: Path) -> ColumnEncryption:
    return ColumnEncryption(store, tmp_path / "release", ID)


def symbols_of(values: NDArray[np.int64], size: int) -> Symbols:
    symbols: Symbols = np.empty(len(values), symbol_dtype(size))
    symbols[:] = values
    return symbols


def key_of(store: CuratorStore, attribute: str = "sex") -> bytes:
    found = store.keys.pad(ID, attribute)
    assert found is not None
    return found[0]


def ciphertext_of(encryption: ColumnEncryption, size: int, attribute: str = "sex") -> Symbols:
    return read(encryption.ciphertext(attribute), size)


def under(noise: CuratorsNoise, symbols: Symbols, key: bytes) -> Symbols:
    """Return what lies under the pad, of a column of five symbols."""
    column = PlainColumn(attribute="sex", symbols=symbols, size=5)
    return np.concatenate([*noise.with_noise_and_canaries(column, key)])


def opened(store: CuratorStore, encryption: ColumnEncryption, size: int, pad: Pad, attribute: str = "sex") -> Symbols:
    """Decrypt with what the researcher would get."""
    ciphertext = ciphertext_of(encryption, size, attribute)
    if pad is Pad.CHACHA20:
        assert not encryption.pad_file(attribute).exists()
        decrypt(ciphertext, size, CipherStream(key_of(store, attribute)), ciphertext)
        return ciphertext
    drawn = np.fromfile(encryption.pad_file(attribute), symbol_dtype(size)).astype(np.int64)
    assert drawn.max() < size
    return symbols_of((ciphertext.astype(np.int64) - drawn) % size, size)


@BOTH
def test_what_is_encrypted_can_be_decrypted(store: CuratorStore, encryption: ColumnEncryption, pad: Pad) -> None:
    for size in (*range(2, 30), 100, 127, 128, 129, 250, 255, 256, 257, 300):
        name, column = f"a{size}", symbols_of(np.arange(40) * 13 % size, size)
        digest = encrypt(encryption, name, column, size, pad, PLAIN)
        assert digest == file_digest(encryption.ciphertext(name))
        assert ciphertext_of(encryption, size, name).max() < size
        assert np.array_equal(opened(store, encryption, size, pad, name), column)


@BOTH
def test_a_column_of_several_chunks(store: CuratorStore, encryption: ColumnEncryption, pad: Pad) -> None:
    column: Symbols = (np.arange(2 * CHUNK + 5) % 300).astype("<u2")
    digest = encrypt(encryption, "sex", column, 300, pad, PLAIN)
    assert digest == file_digest(encryption.ciphertext("sex"))
    assert np.array_equal(opened(store, encryption, 300, pad), column)


@BOTH
def test_ciphertext_of_a_constant_column_is_uniform_and_its_chunks_differ(
    store: CuratorStore, encryption: ColumnEncryption, pad: Pad
) -> None:
    """Alpha 1e-6: the pad is the operating system's, so there is no seed."""
    encrypt(encryption, "sex", np.full(2 * CHUNK, 3, np.uint8), 5, pad, PLAIN)
    ciphertext = ciphertext_of(encryption, 5).astype(np.int64)
    assert stats.chisquare(np.bincount(ciphertext, minlength=5)).pvalue > 1e-6
    pairs = ciphertext[:CHUNK] * 5 + ciphertext[CHUNK:]
    assert stats.chisquare(np.bincount(pairs, minlength=25)).pvalue > 1e-6
    assert store.keys.pad(ID, "sex") is not None


def test_the_pad_file_is_the_one_time_pad_s_key(store: CuratorStore, encryption: ColumnEncryption) -> None:
    encrypt(encryption, "sex", SYMBOLS, 5, Pad.OTP, PLAIN)
    assert key_of(store) == hashlib.sha256(encryption.pad_file("sex").read_bytes()).digest()
    assert encryption.pad_file("sex").stat().st_size == ROWS


def test_known_answers_of_pads(
    store: CuratorStore, encryption: ColumnEncryption, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both kinds of pad from the same bytes: the file of the one is what the other would draw."""
    key = bytes(range(32))
    monkeypatch.setattr("veiltab.curator.columns.encryption.SystemSource", lambda: CipherStream(key))
    monkeypatch.setattr("veiltab.curator.columns.encryption.os", SimpleNamespace(urandom=lambda _: key))
    column: Symbols = np.zeros(CHUNK + 3, "<u2")
    encrypt(encryption, "sex", column, 300, Pad.OTP, PLAIN)
    encrypt(encryption, "age", column, 300, Pad.CHACHA20, PLAIN)
    drawn = encryption.pad_file("sex").read_bytes()
    assert drawn == encryption.ciphertext("sex").read_bytes() == encryption.ciphertext("age").read_bytes()
    assert (drawn[:8].hex(), drawn[-6:].hex()) == ("29019200e8007c00", "c00003009600")
    assert key_of(store, "age") == key


@BOTH
def test_every_attribute_and_release_has_a_key_of_its_own(store: CuratorStore, tmp_path: Path, pad: Pad) -> None:
    ciphertexts, keys = set(), set()
    for release in (ID, "f" * 32):
        encryption = ColumnEncryption(store, tmp_path / release, release)
        for attribute in ("sex", "age", "salary"):
            ciphertexts.add(encrypt(encryption, attribute, SYMBOLS, 5, pad, PLAIN))
            found = store.keys.pad(release, attribute)
            assert found is not None
            keys.add(found[0])
    assert (len(ciphertexts), len(keys)) == (6, 6)


def crash(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@BOTH
def test_several_columns_are_recorded_together_after_their_last_symbol(
    store: CuratorStore, encryption: ColumnEncryption, monkeypatch: pytest.MonkeyPatch, pad: Pad
) -> None:
    done = list[tuple[str, bool]]()

    def watch(owner: object, name: str) -> None:
        call = getattr(owner, name)

        def watched(*args: Any) -> Any:  # noqa: ANN401 - those of the method
            done.append((name, store.connection.in_transaction))
            return call(*args)

        monkeypatch.setattr(owner, name, watched)

    watch(store.keys, "spend_keys")
    watch(encryption, "_write")
    columns = [PlainColumn(attribute=name, symbols=SYMBOLS, size=5) for name in ("sex", "age")]
    encryption.encrypt(columns, pad, PLAIN)
    encryption.encrypt(columns, pad, PLAIN)
    assert done == [("_write", False)] * 2 + [("spend_keys", True)] * 2
    with monkeypatch.context() as broken:
        broken.setattr(store.keys, "spend_keys", crash)
        with pytest.raises(KeyboardInterrupt):
            encrypt(encryption, "job", SYMBOLS, 5, pad, PLAIN)
    assert store.keys.pad(ID, "job") is None
    assert store.keys.ciphertext_digest(ID, "sex") != store.keys.ciphertext_digest(ID, "age")


@BOTH
@pytest.mark.parametrize("noise", [PLAIN, NOISE], ids=["plain", "noise"])
@pytest.mark.parametrize("step", ["_write", "spend_keys"])
def test_a_crash_before_the_digest_is_recorded_costs_the_key(  # noqa: PLR0913, PLR0917 - fixtures
    store: CuratorStore,
    encryption: ColumnEncryption,
    monkeypatch: pytest.MonkeyPatch,
    pad: Pad,
    noise: CuratorsNoise,
    step: str,
) -> None:
    """And other symbols replace the same rows then."""
    drawn: list[bytes] = []
    draw = encryption._keys

    def recorded(*args: Any) -> tuple[bytes, bytes]:  # noqa: ANN401 - those of the method
        keys = draw(*args)
        drawn.extend(filter(None, keys))
        return keys

    monkeypatch.setattr(encryption, "_keys", recorded)
    with monkeypatch.context() as broken:
        broken.setattr(encryption if step == "_write" else store.keys, step, crash)
        with pytest.raises(KeyboardInterrupt):
            encrypt(encryption, "sex", SYMBOLS, 5, pad, noise)
    assert store.keys.pad(ID, "sex") is None
    left = encryption.ciphertext("sex")
    before = left.read_bytes() if left.exists() else b""
    assert bool(before) is (step == "spend_keys")
    encrypt(encryption, "sex", SYMBOLS, 5, pad, noise)
    each = 2 if noise is NOISE else 1
    assert len(set(drawn)) == len(drawn) == 2 * each
    assert key_of(store) == drawn[each]
    assert left.read_bytes() != before
    assert np.array_equal(opened(store, encryption, 5, pad), under(noise, SYMBOLS, drawn[-1]))
    for key in drawn[each:]:
        with pytest.raises(ConflictError):
            store.keys.spend_keys("f" * 32, "age", b"digest", key)


# The curators' noise and the canaries


@BOTH
def test_noise_and_canaries_lie_under_the_pad(
    store: CuratorStore, encryption: ColumnEncryption, monkeypatch: pytest.MonkeyPatch, pad: Pad
) -> None:
    keys: list[bytes] = []
    applied = CuratorsNoise.with_noise_and_canaries

    def observed(noise: CuratorsNoise, column: PlainColumn, key: bytes) -> Iterator[Symbols]:
        keys.append(key)
        return applied(noise, column, key)

    monkeypatch.setattr(CuratorsNoise, "with_noise_and_canaries", observed)
    digest = encrypt(encryption, "sex", SYMBOLS, 5, pad, NOISE)
    ciphertext = ciphertext_of(encryption, 5)
    assert digest == file_digest(encryption.ciphertext("sex"))
    assert len(ciphertext) == ROWS + 40
    monkeypatch.setattr(CuratorsNoise, "with_noise_and_canaries", applied)
    assert np.array_equal(opened(store, encryption, 5, pad), under(NOISE, SYMBOLS, keys[0]))
    assert key_of(store) != keys[0]
    with refuses(ConflictError, where="attribute age"):
        store.keys.spend_keys("f" * 32, "age", b"digest", keys[0])


def test_one_key_never_serves_both_uses(encryption: ColumnEncryption, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.columns.encryption.os", SimpleNamespace(urandom=bytes))
    with refuses(ConflictError, where="attribute sex"):
        encrypt(encryption, "sex", SYMBOLS, 5, Pad.CHACHA20, NOISE)
    assert encryption._store.keys.pad(ID, "sex") is None


@BOTH
def test_recorded_bytes_alone_are_sent(
    store: CuratorStore, encryption: ColumnEncryption, tmp_path: Path, pad: Pad
) -> None:
    digest = encrypt(encryption, "sex", SYMBOLS, 5, pad, PLAIN)
    sent, key = encryption.ciphertext("sex").read_bytes(), key_of(store)
    for column in (SYMBOLS, SYMBOLS[::-1].copy(), np.zeros(ROWS, np.uint8)):
        again = ColumnEncryption(store, tmp_path / "release", ID)
        assert encrypt(again, "sex", column, 5, pad, PLAIN) == digest
    assert (encryption.ciphertext("sex").read_bytes(), key_of(store)) == (sent, key)


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flipped(path: Path) -> None:
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


@BOTH
@pytest.mark.parametrize("damage", [Path.unlink, shortened, flipped])
def test_a_ciphertext_that_is_gone_or_altered_is_never_made_again(
    store: CuratorStore, encryption: ColumnEncryption, pad: Pad, damage: Callable[[Path], None]
) -> None:
    encrypt(encryption, "sex", SYMBOLS, 5, pad, PLAIN)
    key = key_of(store)
    damage(encryption.ciphertext("sex"))
    for _ in range(2):
        with refuses(IntegrityError, where="attribute sex"):
            encrypt(encryption, "sex", SYMBOLS, 5, pad, PLAIN)
    assert key_of(store) == key
    assert store.connection.execute("SELECT count(*) FROM spent_key").fetchone()[0] == 1


@BOTH
def test_a_generator_that_repeats_itself_is_caught(
    store: CuratorStore, encryption: ColumnEncryption, monkeypatch: pytest.MonkeyPatch, pad: Pad
) -> None:
    stuck = SimpleNamespace(urandom=lambda count: bytes(range(256)) * (count // 256) + bytes(count % 256))
    monkeypatch.setattr("veiltab.curator.columns.encryption.os", stuck)
    monkeypatch.setattr("veiltab.common.core.randomness.os", stuck)
    encrypt(encryption, "sex", SYMBOLS, 5, pad, PLAIN)
    with refuses(ConflictError, where="attribute age"):
        encrypt(encryption, "age", SYMBOLS, 5, pad, PLAIN)
    assert store.keys.pad(ID, "age") is None


def test_short_one_time_pads_may_be_equal_by_chance(encryption: ColumnEncryption, store: CuratorStore) -> None:
    for number in range(20):
        encrypt(encryption, f"a{number}", np.zeros(1, np.uint8), 2, Pad.OTP, PLAIN)
    assert len({encryption.pad_file(f"a{number}").read_bytes() for number in range(20)}) <= 2
    assert store.connection.execute("SELECT count(*) FROM spent_key").fetchone()[0] == 20


def test_what_is_forgotten_is_deleted(encryption: ColumnEncryption) -> None:
    encryption.forget_ciphertext()
    encryption.forget_pads()
    encrypt(encryption, "sex", SYMBOLS, 5, Pad.OTP, PLAIN)
    encrypt(encryption, "age", SYMBOLS, 5, Pad.CHACHA20, PLAIN)
    encryption.forget_ciphertext()
    assert not encryption.ciphertext("sex").exists()
    assert not encryption.ciphertext("age").exists()
    assert encryption.pad_file("sex").exists()
    encryption.forget_pads()
    assert not encryption.pad_file("sex").exists()


@BOTH
def test_a_symbol_outside_its_alphabet_makes_no_ciphertext(encryption: ColumnEncryption, pad: Pad) -> None:
    column = np.array([0, 1, 5, 2], np.uint8)
    with pytest.raises(IntegrityError, match="1 of 4 symbols lie outside"):
        encrypt(encryption, "sex", column, 5, pad, PLAIN)
    assert not encryption.ciphertext("sex").exists()
