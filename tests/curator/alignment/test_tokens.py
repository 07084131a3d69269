import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.curator.table.tokens import tokens

KEY = bytes(range(32))


def reference(ids: list[str], key: bytes = KEY) -> list[bytes]:
    found = []
    for one in ids:
        cmac = CMAC(algorithms.AES(key))
        cmac.update(one.encode())
        found.append(cmac.finalize())
    return found


def rows(array: object, key: bytes = KEY) -> list[bytes]:
    return [row.tobytes() for row in tokens(array, key)]


# NIST SP 800-38B, appendix D.3 (AES-256): the first bytes of one message, and their tags.
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_MESSAGE = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
NIST_TAGS = {
    0: "028962f61b7bf89efc6b551f4667d983",
    16: "28a7023f452e8f82bd4bf28d8c37c35c",
    40: "aaf3d8f1de5640c232f5b169b9c911e6",
    64: "e1992190549f6ed5696a2c056c315410",
}


@pytest.mark.parametrize("length", NIST_TAGS)
def test_nist_vectors(length: int) -> None:
    offsets = pa.py_buffer(np.array([0, length], np.int32).tobytes())
    message = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(NIST_MESSAGE))
    assert rows(message, NIST_KEY)[0].hex() == NIST_TAGS[length]
    corrupted = pa.py_buffer(bytes([NIST_MESSAGE[0] ^ 1]) + NIST_MESSAGE[1:])
    if length:
        assert rows(pa.StringArray.from_buffers(1, offsets, corrupted), NIST_KEY)[0].hex() != NIST_TAGS[length]


@settings(deadline=None)
@given(st.lists(st.text(max_size=70), max_size=30), st.sampled_from([pa.string(), pa.large_string()]), st.data())
def test_every_token_is_the_cmac_of_its_id(ids: list[str], kind: object, data: st.DataObject) -> None:
    array = pa.array(ids, type=kind)
    assert rows(array) == reference(ids)
    start = data.draw(st.integers(0, len(ids)))
    stop = data.draw(st.integers(start, len(ids)))
    assert rows(array.slice(start, stop - start)) == reference(ids[start:stop])
    both = pa.chunked_array([array.slice(start), array, array.slice(0, start)], type=kind)
    assert rows(both) == reference(ids[start:] + ids + ids[:start])


@pytest.mark.parametrize("length", [*range(50), 63, 64, 65, 1000, 5000])
def test_every_length_alone_and_beside_others(length: int) -> None:
    ids = ["é" * (length // 2) + "x" * (length % 2)]
    assert len(ids[0].encode()) == length
    assert rows(pa.array(ids)) == reference(ids)
    mixed = [*ids, "", "ab", "y" * 16, *ids, "z" * 33]
    assert rows(pa.array(mixed)) == reference(mixed)


@pytest.mark.parametrize("scale", [1, 3])
def test_batches_join_without_a_seam(scale: int) -> None:
    ids = [f"{i:0{1 + scale * (i % 12)}d}" for i in range(2**16 + 50)]
    found = tokens(pa.array(ids), KEY)
    assert found.shape == (len(ids), 16)
    picked = [0, 1, 2**16 - 1, 2**16, 2**16 + 1, len(ids) - 1]
    assert [found[i].tobytes() for i in picked] == reference([ids[i] for i in picked])
    assert len({row.tobytes() for row in found}) == len(set(ids))


def test_no_ids_no_tokens() -> None:
    assert tokens(pa.array([], pa.string()), KEY).shape == (0, 16)
    assert tokens(pa.chunked_array([], pa.string()), KEY).shape == (0, 16)


def test_another_key_gives_other_tokens() -> None:
    assert rows(pa.array(["a"])) != rows(pa.array(["a"]), bytes(32))


def test_what_cannot_be_tokenised_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidInputError, match="2 ids are missing"):
        tokens(pa.array(["secret", None, None]), KEY)
    with pytest.raises(InvalidInputError, match="type int64"):
        tokens(pa.array([1, 2]), KEY)
    with pytest.raises(InvalidInputError, match="16 bytes, not 32"):
        tokens(pa.array(["a"]), KEY[:16])
