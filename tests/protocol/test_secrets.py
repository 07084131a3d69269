"""Ids, tokens, seeds, keys and unperturbed ciphertext: found where they belong, and nowhere else, by nobody else."""

import base64
import ctypes
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.protocol.village import FREE
from tests.protocol.world import ALICE, BOB, CLOUD, RITA, ROSA, Who, World, launcher, made_world
from veiltab.common.core.derivation import derive
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.rpc.parties.identity import Role

WINDOW = 96
"""Rows; that many in a row are never all kept by the mechanism, which replaces four in ten."""


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """Secrets of a study under way, by name, each as the bytes that must not be found."""

    ids: Mapping[str, bytes]
    tokens: Mapping[str, bytes]
    seeds: Mapping[str, bytes]
    keys: Mapping[str, bytes]
    canary_keys: Mapping[str, bytes]
    ciphertext: Mapping[str, bytes]
    plaintext: Mapping[str, bytes]

    @property
    def every(self) -> tuple[Mapping[str, bytes], ...]:
        return (*(self.ids, self.tokens, self.seeds, self.keys, self.canary_keys), *(self.ciphertext, self.plaintext))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Everyone runs and logs everything."""
    world = made_world(tmp_path_factory.mktemp("told") / "study")
    for party in world.local.parties:
        world.local.state_folder(*party).mkdir(mode=0o755)
    # As any shell has it: new files are for everybody to read.
    world.local.launcher = ("sh", "-c", 'umask 022; exec "$0" "$@"', *launcher("verbose,pause=0.2"))
    with world.local:
        world.start(ALICE, BOB, CLOUD, ROSA, RITA)
        yield world


def secrets_under_way(world: World, release_id: str) -> Canaries:
    """Read the secrets of a release that waits for the server from the curators' own folders."""
    seeds: dict[str, bytes] = {}
    keys: dict[str, bytes] = {}
    canary_keys: dict[str, bytes] = {}
    ciphertext: dict[str, bytes] = {}
    tokens: dict[str, bytes] = {}
    for curator in ("alice", "bob"):
        folder = world.local.state_folder(Role.CURATOR, curator)
        with world.store(curator) as store:
            for row in store.connection.execute("SELECT id, share, value FROM coin").fetchall():
                # Those of earlier releases are forgotten, and empty.
                shares = {f"{curator} {row['id']} share": row["share"], f"{row['id']} value": row["value"]}
                seeds |= {name: share for name, share in shares.items() if share}
            rows = store.connection.execute("SELECT attribute, key FROM pad WHERE release_id = ?", [release_id])
            keys |= {row["attribute"]: bytes(row["key"]) for row in rows.fetchall()}
            canary_keys[f"{curator} canaries"] = store.keys.canary_key(release_id)
        for path in (folder / "releases" / release_id).iterdir():
            kept = {".ciphertext": ciphertext, ".canaries": ciphertext, ".pad": keys, ".bin": seeds}[path.suffix]
            data = path.read_bytes()
            pieces = {
                f"{path.name} {start}": data[start : start + WINDOW]
                for start in range(0, len(data) - WINDOW + 1, WINDOW)
            }
            kept |= {f"{name} of {release_id}": piece for name, piece in pieces.items()}
        for path in folder.glob("alignments/*/own-tokens.bin"):
            data = path.read_bytes()
            tokens |= {f"{curator} {start}": data[start : start + 16] for start in range(0, len(data), 160)}
    for name, value in list(seeds.items()):
        if name.endswith("value"):
            labels = ("sampling", "sample check", "noise coins", "tokens")
            seeds |= {f"{name} {label}": derive(value, label) for label in labels}
    canary_keys |= {f"symbols {name}": derive(key, f"symbols {name}") for name in FREE for key in canary_keys.values()}
    plain = {name: bytes(world.people.symbols[name].astype("u1").tobytes()[:WINDOW]) for name in FREE}
    ids = {name: name.encode() for name in world.people.ids[::10]}
    return Canaries(
        ids=ids, tokens=tokens, seeds=seeds, keys=keys, canary_keys=canary_keys, ciphertext=ciphertext, plaintext=plain
    )


def spellings(secret: bytes) -> tuple[bytes, ...]:
    """Return how a secret may be written: raw, in hexadecimal, in base 64, and as Python and JSON write bytes."""
    escaped = repr(secret)[2:-1].encode()
    return (secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret)[:-4], escaped)


def found(files: Mapping[str, bytes], *kinds: Mapping[str, bytes]) -> list[str]:
    """Return which secrets stand in which files."""
    return [
        f"{name} in {file}"
        for secrets in kinds
        for name, secret in secrets.items()
        for file, data in files.items()
        if any(spelling in data for spelling in spellings(secret))
    ]


def files_of(world: World, who: Who) -> dict[str, bytes]:
    """Return everything that a party keeps."""
    folder = world.local.state_folder(*who)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def logs_of(world: World) -> dict[str, bytes]:
    """Return everything that was logged."""
    return {str(party): world.log(party).encode() for party in world.local.parties}


@pytest.mark.parametrize(
    "mode",
    [(Sampling.SEED, Pad.CHACHA20), pytest.param((Sampling.INDICES, Pad.OTP), marks=pytest.mark.long)],
    ids=["seed-chacha20", "indices-otp"],
)
def test_secrets_stay_where_they_belong(told: World, mode: tuple[Sampling, Pad]) -> None:
    sampling, pad = mode
    # The server dies at the first upload: the curators hold every secret of the release then.
    told.restart(CLOUD, how=launcher("veiltab.server.release.receiving:Receiver._take:1,verbose"))
    with told.client() as client:
        release = client.request(FREE, epsilon="4", sampling=sampling, pad=pad, label=told.label())
    told.wait_for_kill(CLOUD)
    told.wait_for_state("alice", release.id, "uploading")
    told.wait_for_state("bob", release.id, "uploading")
    canaries = secrets_under_way(told, release.id)
    assert all(canaries.every)
    assert all(secret for kind in canaries.every for secret in kind.values())
    for kind in (canaries.seeds, canaries.keys, canaries.canary_keys):
        assert found(files_of(told, ALICE), kind), "what is searched for can be found"
    told.start(CLOUD)
    with told.client() as client:
        client.release(release.id).wait(40)
        # It has had the keys and the columns, and kept what it counted.
        client.release(release.id).estimate()
    certificate = told.local.state_folder(*ROSA) / "releases" / release.id / "certificate"
    told.wait_until(lambda: certificate.exists() and not told.leftovers())
    check_server(told, canaries)
    check_logs_and_researchers(told, canaries, release.id)
    check_curators(told, canaries, release.id)


def check_server(world: World, canaries: Canaries) -> None:
    """See that the server holds no secret, and no ciphertext as it came."""
    kept = files_of(world, CLOUD)
    assert any("published" in name for name in kept)
    assert found(kept, *canaries.every) == []


def check_logs_and_researchers(world: World, canaries: Canaries, release_id: str) -> None:
    """See that no log holds a secret, and that a desk has none, no row and no column either: counts alone."""
    logs = logs_of(world)
    assert len(b"".join(logs.values())) > 200, "something was logged"
    assert found(logs, *canaries.every) == []
    columns = {
        f"published {name} {start}": data[start : start + WINDOW]
        for name, data in world.published(release_id).items()
        for start in range(0, len(data) - WINDOW + 1, WINDOW)
    }
    assert found(files_of(world, CLOUD), columns), "what is searched for can be found"
    for desk in (ROSA, RITA):
        assert found(files_of(world, desk), *canaries.every, columns) == []
    own = world.local.state_folder(*ROSA) / "releases" / release_id
    assert sorted(path.name for path in own.iterdir()) == ["certificate", "histogram.bin"]


def check_curators(world: World, canaries: Canaries, release_id: str) -> None:
    """See that curators have none of another's keys, and none of the release's seed once everyone has used it."""
    alice, bob = files_of(world, ALICE), files_of(world, BOB)
    owner = world.local.study.owner_of
    for name, key in canaries.keys.items():
        other = bob if owner(name.partition(".")[0]) == "alice" else alice
        assert found(other, {name: key}) == []
    for curator in ("alice", "bob"):
        with world.store(curator) as store:
            assert store.coins.coin_value(f"release/{release_id}") is None
    seeds = {name: seed for name, seed in canaries.seeds.items() if release_id in name}
    assert len(seeds) >= 3
    world.wait_until(lambda: not found({**files_of(world, ALICE), **files_of(world, BOB)}, seeds))


def test_no_file_of_a_party_is_open_to_others(told: World) -> None:
    """Its state folder was open to everybody when it began; the release of the test above stands in it."""
    paths = [*Path(told.local.folder / "pki").rglob("*.key")]
    for party in told.local.parties:
        folder = told.local.state_folder(*party)
        paths += [folder, *folder.rglob("*")]
    assert len(paths) > 30
    assert not [f"{oct(path.stat().st_mode)} {path}" for path in paths if path.stat().st_mode & 0o077]
    assert any(path.name == "published" for path in paths)


def test_no_party_writes_its_memory_to_disk_when_it_crashes(told: World) -> None:
    for process in told.local._running.values():
        limits = Path(f"/proc/{process.pid}/limits").read_text("utf-8")
        (line,) = (line for line in limits.splitlines() if line.startswith("Max core file size"))
        assert line.split()[4:6] == ["0", "0"]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "prctl"), reason="this system has no prctl")
def test_no_other_process_reads_the_memory_of_a_party() -> None:
    script = """
import ctypes
import click
from veiltab.common.command.cli import run
run(click.Command("nothing", callback=lambda: None))
print(ctypes.CDLL(None).prctl(3))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["0"]
