"""The group: vectors of RFC 9496, and where libsodium is loaded from."""

import subprocess
import sys
from pathlib import Path

import pytest

from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.ristretto import IDENTITY, added, elements, hashed, multiple, scalar, subtracted

GENERATOR = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")
TWICE = bytes.fromhex("6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919")  # RFC 9496, A.1
BAD = {  # RFC 9496, A.2, and lengths
    "not canonical": "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "above the field": "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "negative": "0100000000000000000000000000000000000000000000000000000000000000",
    "no square": "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
    "too short": "e2f2ae0a",
}
FROM_HASH = (  # RFC 9496, A.3
    "5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1",
    "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6",
    "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
)
ORDER = 2**252 + 27742317777372353535851937790883648493


def test_sums_and_multiples_are_those_of_the_rfc() -> None:
    two = scalar((2 + ORDER).to_bytes(64, "little"))
    assert two == (2).to_bytes(32, "little")
    assert multiple(two) == multiple(two, GENERATOR) == added(GENERATOR, GENERATOR) == TWICE
    assert subtracted(TWICE, GENERATOR) == GENERATOR
    assert multiple(two, IDENTITY) == multiple(bytes(32)) == subtracted(TWICE, TWICE) == IDENTITY
    assert hashed(bytes.fromhex(FROM_HASH[0] + FROM_HASH[1])).hex() == FROM_HASH[2]


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_element_is_refused_anywhere(name: str) -> None:
    bad = bytes.fromhex(BAD[name])
    assert elements(GENERATOR + IDENTITY, 2, where="here") == [GENERATOR, IDENTITY]
    for message in (GENERATOR + bad, bad + GENERATOR):
        with pytest.raises(IntegrityError, match="not 2 elements of the group"):
            elements(message, 2, where="here")


def test_loading_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (tmp_path / "temporary").mkdir()
    script = f"""
import os, pathlib
from veiltab.common.oblivious.ristretto import load, scalar
load(pathlib.Path({str(folder)!r}))
maps = pathlib.Path("/proc/self/maps")
assert not maps.exists() or {str(folder)!r} in maps.read_text()
assert len(scalar(bytes(64))) == 32
"""
    environment = {"TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert list(folder.iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []
