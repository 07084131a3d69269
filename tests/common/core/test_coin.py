import hashlib
import hmac
from itertools import product

import pytest

from tests.conftest import refuses
from veiltab.common.core.coin import SHARE_LENGTH, commitment, toss, transcript, verify_share
from veiltab.common.core.derivation import derive
from veiltab.common.errors import IntegrityError

COIN = "release/00000000000000000000000000000001"
SHARES = {"alice": bytes(range(32)), "bob": bytes(range(32, 64)), "carol": b"\xff" * 32}


def framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def expanded(secret: bytes, info: bytes) -> bytes:
    return hmac.digest(secret, info + b"\1", "sha256")  # RFC 5869, section 2.3, first block


def by_hand(coin_id: str, shares: dict[str, bytes]) -> bytes:
    material = framed(*(part for name in sorted(shares) for part in (name.encode(), shares[name])))
    return expanded(hmac.digest(bytes(32), material, "sha256"), b"veiltab coin " + coin_id.encode())


def test_vectors() -> None:
    committed = {name: commitment(COIN, name, share) for name, share in SHARES.items()}
    for name, share in SHARES.items():
        message = framed(b"veiltab commitment", COIN.encode(), name.encode(), share)
        assert committed[name] == hashlib.sha256(message).digest()
    parts = [part for name in SHARES for part in (name.encode(), committed[name])]
    assert transcript(committed) == hashlib.sha256(framed(b"veiltab transcript", *parts)).digest()
    assert toss(COIN, SHARES) == by_hand(COIN, SHARES)
    assert derive(SHARES["alice"], "sampling") == expanded(SHARES["alice"], b"veiltab sampling")
    # The same numbers in another year: a change would part curators of different versions.
    assert committed["alice"].hex() == "f30fd31324d9a17a2f9e89b2bb13c6f2f01ac3a074e251469c88f7463a7a4d5f"
    assert transcript(committed).hex() == "5d80d2fec3de8fa205a2cc73881da9726bc723234ac3ac51af2f20bf8d0b4122"
    assert toss(COIN, SHARES).hex() == "ed0b34cafd6c3705dba225f3f8cbf2f9c3e5945815a650457bdbc097f6cd16c6"
    assert derive(bytes(32), "sampling").hex() == "2275d6424349154a91c0744a8d6835ab17fcbee05057eaa2ca77ac95cbb6f991"


def test_another_share_coin_or_name_is_caught() -> None:
    share = SHARES["alice"]
    committed = commitment(COIN, "alice", share)
    for place, bit in product(range(SHARE_LENGTH), range(8)):
        flipped = bytearray(share)
        flipped[place] ^= 1 << bit
        with refuses(IntegrityError, where="curator alice") as caught:
            verify_share(COIN, "alice", bytes(flipped), committed)
        assert share.hex() not in str(caught.value)
    for coin, name in ((COIN, "bob"), (COIN[:-1] + "2", "alice"), (COIN + "a", "lice"), ("", COIN + "alice")):
        with pytest.raises(IntegrityError, match=f"curator {name}"):
            verify_share(coin, name, share, committed)


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_a_share_of_another_length_is_caught_even_if_it_was_committed_to(length: int) -> None:
    share = bytes(length)
    with pytest.raises(IntegrityError):
        verify_share(COIN, "alice", share, commitment(COIN, "alice", share))


@pytest.mark.parametrize("committed", [b"", bytes(32), commitment(COIN, "alice", SHARES["alice"])[:31]])
def test_a_commitment_that_is_none_is_caught(committed: bytes) -> None:
    with pytest.raises(IntegrityError):
        verify_share(COIN, "alice", SHARES["alice"], committed)


def test_the_transcript_depends_on_every_commitment_and_name() -> None:
    committed = {name: commitment(COIN, name, share) for name, share in SHARES.items()}
    seen = {transcript(committed)}
    for name, one in committed.items():
        for place in range(32):
            other = bytearray(one)
            other[place] ^= 1
            seen.add(transcript({**committed, name: bytes(other)}))
        seen.add(transcript({other: c for other, c in committed.items() if other != name}))
        seen.add(transcript({(f"{other}x" if other == name else other): c for other, c in committed.items()}))
    swapped = {**committed, "alice": committed["bob"], "bob": committed["alice"]}
    seen.add(transcript(swapped))
    assert len(seen) == 1 + 3 * 32 + 3 + 3 + 1


def test_the_value_depends_on_every_share_and_name_and_the_coin() -> None:
    seen = {toss(COIN, SHARES), toss(COIN + "0", SHARES)}
    for name, share in SHARES.items():
        for place in range(32):
            other = bytearray(share)
            other[place] ^= 1
            seen.add(toss(COIN, {**SHARES, name: bytes(other)}))
    seen.add(toss(COIN, {**SHARES, "alice": SHARES["bob"], "bob": SHARES["alice"]}))
    assert len(seen) == 2 + 3 * 32 + 1


def test_labels_separate_keys() -> None:
    assert len({derive(bytes(32), label) for label in ("sampling", "sample check", "tokens", "population", "")}) == 5
