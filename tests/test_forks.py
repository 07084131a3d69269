"""Two processes that were one a moment ago draw different secrets: nothing secret comes from a state that both have."""

import json
import subprocess
import sys

SCRIPT = """
import json, os, sys, tempfile
from contextlib import closing
from pathlib import Path
import numpy as np
from tests.worlds.columns import encrypt
from veiltab.common.collection.tokens import new_token
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.randomness import SystemSource
from veiltab.common.release.modes import Pad
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise
from veiltab.curator.records.store import CuratorStore

def drawn(pad):
    with tempfile.TemporaryDirectory() as name, closing(CuratorStore(Path(name) / "curator.sqlite")) as store:
        columns = ColumnEncryption(store, Path(name), "0" * 32)
        places = CanaryPlaces.of(bytes(32), rows=64, canaries=0)
        noise = CuratorsNoise(mechanism=None, coin_key=b"", canary_key=bytes(32), places=places)
        encrypt(columns, "sex", np.zeros(64, np.uint8), 2, pad, noise)
        return store.keys.pad("0" * 32, "sex")[0].hex(), columns.ciphertext("sex").read_bytes().hex()

def secrets_of_one():
    out = np.empty(32, np.uint8)
    SystemSource().fill(out.data, label=0, chunk=0)
    return [*drawn(Pad.CHACHA20), *drawn(Pad.OTP), new_token().hex(), out.tobytes().hex()]

secrets_of_one()  # whatever keeps a state has one by now
ends = []
for _ in range(8):
    read, write = os.pipe()
    if os.fork() == 0:
        with os.fdopen(write, "w") as file:
            json.dump(secrets_of_one(), file)
        os._exit(0)
    os.close(write)
    ends.append(read)
print(json.dumps([secrets_of_one(), *(json.load(os.fdopen(end)) for end in ends)]))
"""


def test_processes_that_were_forked_share_no_secret() -> None:
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, check=True)
    drawn = json.loads(ended.stdout)
    everything = [text for process in drawn for text in process]
    assert len(drawn) == 9
    assert len(set(everything)) == len(everything) == 9 * 6
