import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from veiltab.common.core.randomness import MAX_FILL, ByteSource, CipherStream, SystemSource
from veiltab.common.errors import InvalidInputError

KEY = bytes(range(32))


def stream(source: ByteSource, length: int, label: int, chunk: int) -> bytes:
    out = bytearray(length)
    source.fill(memoryview(out), label=label, chunk=chunk)
    return bytes(out)


# RFC 8439, section 2.3.2 and appendix A.1 (test vector 1): key, nonce, block counter, key stream.
VECTORS = [
    (
        KEY.hex(),
        "000000090000004a00000000",
        1,
        (
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
            "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
        ),
    ),
    (
        "00" * 32,
        "00" * 12,
        0,
        (
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        ),
    ),
]


@pytest.mark.parametrize(("key", "nonce", "counter", "expected"), VECTORS)
def test_rfc_8439_vectors(key: str, nonce: str, counter: int, expected: str) -> None:
    raw = bytes.fromhex(nonce)
    label, chunk = int.from_bytes(raw[:4], "little"), int.from_bytes(raw[4:], "little")
    block = stream(CipherStream(bytes.fromhex(key)), 64 * (counter + 1), label, chunk)[64 * counter :]
    assert block.hex() == expected
    corrupted = bytes([bytes.fromhex(key)[0] ^ 1]) + bytes.fromhex(key)[1:]
    assert stream(CipherStream(corrupted), 64 * (counter + 1), label, chunk)[64 * counter :].hex() != expected


def test_longest_fill_ends_with_the_block_of_its_number() -> None:
    last = stream(CipherStream(KEY), MAX_FILL, 2**32 - 1, 2**64 - 1)[-64:]
    nonce = (MAX_FILL // 64 - 1).to_bytes(4, "little") + b"\xff" * 12
    assert last == Cipher(algorithms.ChaCha20(KEY, nonce), mode=None).encryptor().update(bytes(64))


def test_neighbouring_streams_share_no_block() -> None:
    source = CipherStream(KEY)
    places = [(0, 0), (1, 0), (0, 1), (2**24, 0), (2**31, 0), (0, 2**32), (1, 2**32), (2**32 - 1, 2**64 - 1)]
    blocks = [
        text[i : i + 64] for place in places for text in [stream(source, 2**16, *place)] for i in range(0, 2**16, 64)
    ]
    assert len(set(blocks)) == len(blocks) == len(places) * 2**10


def test_same_place_same_bytes_and_a_prefix_is_a_prefix() -> None:
    assert stream(CipherStream(KEY), 100, 3, 4) == stream(CipherStream(KEY), 1000, 3, 4)[:100]
    assert stream(CipherStream(KEY), 0, 3, 4) == b""


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_key_of_another_length_is_refused_without_showing_it(length: int) -> None:
    with pytest.raises(InvalidInputError, match=f"has {length} bytes"):
        CipherStream(b"\xaa" * length)


@pytest.mark.parametrize(("label", "chunk"), [(-1, 0), (2**32, 0), (0, -1), (0, 2**64)])
def test_place_out_of_range_is_refused(label: int, chunk: int) -> None:
    with pytest.raises(InvalidInputError, match="is outside what a stream counts"):
        stream(CipherStream(KEY), 1, label, chunk)


def test_fill_that_could_wrap_the_counter_is_refused() -> None:
    assert MAX_FILL // 64 <= 2**32
    with pytest.raises(InvalidInputError, match="bytes were asked for at once, more than"):
        stream(CipherStream(KEY), MAX_FILL + 1, 0, 0)


def test_repr_hides_the_key() -> None:
    assert repr(CipherStream(b"k" * 32)) == "CipherStream(key=<hidden>)"


def test_system_source_is_fresh_at_the_same_place() -> None:
    assert stream(SystemSource(), 64, 0, 0) != stream(SystemSource(), 64, 0, 0)
    assert len(set(stream(SystemSource(), 10**5, 0, 0))) == 256
