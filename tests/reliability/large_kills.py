"""Random SIGKILLs of one curator of a large table: python -m tests.reliability.large_kills --rows 10000000 --kills 20.

A deployment is two curators, a server and a researcher: processes of this machine. A first one runs without kills and
shows how long each stage takes. In a second one alice is killed at random moments of loading, of aligning, of drawing
and encrypting a release of everybody, and of what follows; she is started again each time. Her aligned table and her
ciphertext are then compared with what follows from the tables and from the coins that the curators tossed.

After each kill all files of all parties are searched: for ids, which no file may hold, and for plain symbols, which
only the aligned columns hold. The server kills itself at the first column that reaches it, so that ciphertext can be
looked at; it goes on once that is done.
"""

import json
import mmap
import random
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import gcd
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from tests.protocol.village import CATEGORIES, TWO, Rules
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World, launcher, made_world
from tests.reliability.promises import Books, LostReleaseError, ready
from veiltab.common.core.canaries import is_data
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols
from veiltab.common.core.pads import decrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.chunks import CHUNK
from veiltab.curator.alignment.intersection import AlignedTable
from veiltab.curator.columns.noise_and_canaries import curators_noise
from veiltab.curator.peers.coins import alignment_coin, release_coin
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.tokens import tokens

NAMES = ("region", "income")
PREFIX = b"zyzzyva-"
"""With which every id begins, and no other text."""

COMMON = 2
"""The symbol of nearly everybody's region and income: so many in a row are in no ciphertext."""

RUN = bytes([COMMON]) * 32
ALONE = 50
"""For so many people of alice, who is the hub, bob has one more of his own."""

_MAY_HOLD_SYMBOLS = re.compile(r"curator-\w+/alignments/[0-9a-f]+/column-\w+\.npy(\.tmp)?")
_BATCH = 2**20
_STRIDES = {"alice": 0.6180339887, "bob": 0.7548776662}
_UPLOAD = "veiltab.server.release.receiving:Receiver.take:1"
STAGES = ("loading", "aligning", "releasing", "idle")
_PHASES = 4


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a deployment showed.

    Args:
        seed: of the moments.
        rows: n, those of alice.
        kills: stage -> kills in it.
        differences: what is another one than without kills.
        traces: files that hold what no file of their name may.
    """

    seed: str
    rows: int
    kills: dict[str, int]
    differences: Sequence[str]
    traces: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        return not (self.differences or self.traces)

    @property
    def figure(self) -> str:
        """What was shown, as text."""
        stages = ", ".join(f"{self.kills.get(stage, 0)} while {stage}" for stage in STAGES)
        return (
            f"{self.rows} rows: {sum(self.kills.values())} kills ({stages}), {len(self.differences)} differences,"
            f" {len(self.traces)} files with traces"
        )


def people_of(curator: str, rows: int) -> Iterator[NDArray[np.int64]]:
    """Yield the people of a table in its order: 0 to rows - 1 are alice's, larger numbers are bob's own."""
    size = rows + (rows // ALONE if curator == "bob" else 0)
    stride = int(size * _STRIDES[curator])
    while gcd(stride, size) > 1:
        stride += 1
    for start in range(0, size, _BATCH):
        yield np.arange(start, min(start + _BATCH, size)) * stride % size


def ids_of(people: NDArray[np.int64]) -> pa.Array:
    """Return ids, of which no two lengths of digits mix."""
    digits = pc.utf8_lpad(pa.array(people).cast(pa.string()), 12, "0")
    return pc.binary_join_element_wise(PREFIX.decode(), digits, "")


def symbols_of(name: str, people: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a person's symbol of an attribute: of most people the same one."""
    categories = len(CATEGORIES[name])
    return np.where(people % 997 < 990, min(COMMON, categories - 1), people % categories)


def write_tables(folder: Path, rows: int) -> dict[str, Path]:
    """Write both curators' tables, in flat memory."""
    paths = {}
    for curator in _STRIDES:
        names = [name for name, owner in TWO.items() if owner == curator]
        schema = pa.schema([(name, pa.string()) for name in ("id", *names)])
        paths[curator] = folder / f"{curator}.parquet"
        with pa.parquet.ParquetWriter(paths[curator], schema, compression="NONE") as writer:
            for people in people_of(curator, rows):
                columns = [pa.array(CATEGORIES[name]).take(pa.array(symbols_of(name, people))) for name in names]
                writer.write_table(pa.table([ids_of(people), *columns], schema))
    return paths


def world_of(folder: Path, tables: dict[str, Path]) -> World:
    """Make a deployment on some tables; nothing is started."""
    world = made_world(folder, people=100, rules=Rules(budget="1000"))
    world.local.tables = tables
    world.local.options = {ALICE: ("--verbose",)}
    # As for a larger table: several processes work on hers, and a kill of hers leaves them alone.
    world.local.launchers = {ALICE: launcher("small=0")}
    return world


def traces(folder: Path) -> tuple[str, ...]:
    """Return the files of a deployment's folder that hold what no file of their name may."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder))
        if name.startswith("tables/"):
            continue
        with suppress(FileNotFoundError):
            may_hold = {"symbols"} if _MAY_HOLD_SYMBOLS.fullmatch(name) else set()
            found += [f"{name}: {what}" for what in held(path) if what not in may_hold]
    return tuple(found)


def held(path: Path) -> list[str]:
    """Return what a file holds of what is searched for: ids, symbols."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return []
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            return [what for what, word in (("ids", PREFIX), ("symbols", RUN)) if data.find(word) >= 0]


@dataclass(kw_only=True)
class Durations:
    """Seconds that each stage takes without kills."""

    load: float = 0.0
    align: float = 0.0
    encrypt: float = 0.0
    finish: float = 0.0


@dataclass(kw_only=True)
class Run:
    """One release of everybody in a deployment.

    Args:
        world: its parties.
        rows: n, those of alice.
        chance: draws the moments.
        kills: how many to make.
    """

    world: World
    rows: int
    chance: random.Random = field(default_factory=random.Random)
    kills: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    _logged: int = 0

    @property
    def within(self) -> float:
        """Seconds until a step, or the release, counts as lost."""
        return 60 + 1e-4 * self.rows * (1 + self.kills / 10)

    def run(self, durations: Durations) -> Durations:
        """Run it, with as many kills in each phase; return how long these took."""
        world, taken = self.world, Durations()
        world.start(BOB, ROSA)
        world.start(CLOUD, how=launcher(_UPLOAD))
        began = time.monotonic()
        self._start()
        self._kill(0, durations.load, after_load=False)
        self._wait(self._has_loaded)
        taken.load, began = time.monotonic() - began, time.monotonic()
        self._kill(1, durations.align, after_load=True)
        self._wait(lambda: self._alignment() is not None)
        taken.align = time.monotonic() - began
        with ThreadPoolExecutor(1) as researcher:
            asked = researcher.submit(ready, world, NAMES, epsilon="1", within=self.within, sample=self.rows)
            release_id = self._release(asked)
            began = time.monotonic()
            self._kill(2, durations.encrypt, after_load=True)
            self._wait(lambda: self._state(release_id) is ReleaseState.UPLOADING)
            taken.encrypt = time.monotonic() - began
            world.wait_for_kill(CLOUD)
            self._compare(release_id)
            began = time.monotonic()
            world.local.start(*CLOUD)
            self._kill(3, durations.finish, after_load=True)
            asked.result()
            self._wait(lambda: self._state(release_id) is ReleaseState.READY)
            taken.finish = time.monotonic() - began
        self._check_books(release_id)
        self.found += traces(world.local.folder)
        return taken

    def _start(self) -> None:
        self._logged = len(self.world.log(ALICE))
        self.world.local.start(*ALICE)

    def _kill(self, phase: int, seconds: float, *, after_load: bool) -> None:
        """Kill alice and start her again, at moments of so many seconds after her start or her loading."""
        # Once a stage is over it does not begin again: so the early moments come first.
        for moment in sorted(self.chance.uniform(0, seconds) for _ in range(phase, self.kills, _PHASES)):
            if after_load:
                self._wait(self._has_loaded)
            time.sleep(moment)
            self.world.local.kill(*ALICE)
            self.stages[self._stage()] += 1
            self.found += traces(self.world.local.folder)
            self._start()

    def _stage(self) -> str:
        if not self._has_loaded():
            return "loading"
        if self._alignment() is None:
            return "aligning"
        with self.world.store("alice") as store:
            return "releasing" if store.releases.unfinished() else "idle"

    def _has_loaded(self) -> bool:
        """Whether alice has loaded her table since she was started."""
        lines = self.world.log(ALICE)[self._logged :].splitlines()
        return any('"step": "load table"' in line for line in lines)

    def _alignment(self) -> tuple[int, str] | None:
        with self.world.store("alice") as store:
            return store.alignments.latest_alignment()

    def _state(self, release_id: str) -> ReleaseState:
        with self.world.store("alice") as store:
            return store.releases.release(release_id).state

    def _release(self, asked: "Future[str]") -> str:
        """Return the id of the release, once alice has it."""
        found: list[str] = []

        def is_there() -> bool:
            if asked.done():
                asked.result()
            with self.world.store("alice") as store:
                found.extend(stored.request.release_id for stored in store.releases.releases())
            return bool(found)

        self._wait(is_there)
        return found[0]

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Wait in short steps: some stages are short."""
        end = time.monotonic() + self.within
        while not condition():
            if time.monotonic() > end:
                raise LostReleaseError(self.world.log(ALICE)[-2000:])
            time.sleep(0.005)

    def _compare(self, release_id: str) -> None:
        """Compare alice's files with what follows from the tables and the coins."""
        with self.world.store("alice") as store, self.world.store("bob") as other:
            if store.alignments.latest_alignment() != other.alignments.latest_alignment():
                self.differences.append("the curators' alignments")
            self.differences += _compared(self.world, store, self.rows, release_id)

    def _check_books(self, release_id: str) -> None:
        books = Books(world=self.world)
        books.note(release_id)
        self.differences += [f"{one}: not charged" for one in books.uncharged()]
        self.differences += [f"{one}: done twice" for one in books.double()]
        self.differences += ["the ledgers"] if books.ledgers_differ() else []
        self.differences += [f"left over: {name}" for name in self.world.leftovers()]


def _compared(world: World, store: CuratorStore, rows: int, release_id: str) -> Iterator[str]:
    """Yield which files of alice's are not what they must be."""
    spec = store.releases.release(release_id).planned_spec
    state = world.local.state_folder(*ALICE)
    (folder,) = (path for path in (state / "alignments").iterdir() if path.is_dir())
    coin = store.coins.coin_value(alignment_coin(folder.name)) or b""
    people = np.concatenate([part[part < rows] for part in people_of("alice", rows)])
    made = tokens(ids_of(people), derive(coin, "tokens"))
    order = np.argsort(np.ascontiguousarray(made).view("S16")[:, 0], kind="stable")
    people, made = people[order], made[order]
    aligned = AlignedTable(folder)
    if not np.array_equal(aligned.tokens(), made):
        yield "the aligned tokens"
    for name in ("region", "smoker"):
        if not np.array_equal(aligned.column(name), symbols_of(name, people)):
            yield f"the aligned column {name}"
    if held(folder / "column-region.npy") != ["symbols"] or held(world.local.tables["alice"])[:1] != ["ids"]:
        yield "what the search finds where it must"
    seed = store.coins.coin_value(release_coin(release_id)) or b""
    noise = curators_noise(spec, seed)
    drawn = spec.description.scheme.draw(made, derive(seed, "sampling"))
    (column,) = spec.columns_of("alice")
    pad = store.keys.pad(release_id, column.attribute) or (b"", b"")
    ciphertext = state / "releases" / release_id / f"{column.attribute}.ciphertext"
    plain: Symbols = np.frombuffer(ciphertext.read_bytes(), np.uint8).copy()
    decrypt(plain, column.size, CipherStream(pad[0]), plain)
    data = plain[is_data(noise.places.all(), len(plain))]
    expected = symbols_of(column.attribute, people[drawn])
    for part, coins in noise.coins(len(data)):
        expected[part][coins] = data[part][coins]  # what every curator replaced
    if not np.array_equal(data, expected):
        yield "the rows of the ciphertext"


def killed(rows: int, kills: int, seed: str) -> Outcome:
    """Run a deployment without kills and one with them, and remove them unless a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix="veiltab-large-kills-"))
    tables = write_tables(folder, rows)
    durations = Durations()
    for name, number in (("undisturbed", 0), ("killed", kills)):
        world = world_of(folder / name, tables)
        run = Run(world=world, rows=rows, chance=random.Random(seed), kills=number)  # noqa: S311 - it draws moments
        with world.local:
            durations = run.run(durations)
        click.echo(f"{name}: {durations}", err=True)
        if run.differences or run.found:
            break
        shutil.rmtree(folder / name)
    outcome = Outcome(
        seed=seed, rows=rows, kills=dict(run.stages), differences=run.differences, traces=sorted(set(run.found))
    )
    if outcome.holds:
        shutil.rmtree(folder)
    else:
        click.echo(f"kept for whoever looks into it: {folder}: {outcome}", err=True)
    return outcome


@click.command(help=__doc__)
@click.option(
    "--rows",
    default=10**7,
    show_default=True,
    type=click.IntRange(min=CHUNK + 1),
    help="Common respondents: more than fit one message, as the server is killed while it takes a column.",
)
@click.option("--kills", default=20, show_default=True)
@click.option("--seed", default="", help="Of the moments; a new one if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print everything.")
def main(rows: int, kills: int, seed: str, as_json: bool) -> None:  # noqa: FBT001 - an option
    """Run it and print what it showed; exit with 1 if a promise was broken."""
    outcome = killed(rows, kills, seed or secrets.token_hex(4))
    click.echo(json.dumps(asdict(outcome)) if as_json else outcome.figure)
    sys.exit(0 if outcome.holds else 1)


if __name__ == "__main__":
    main()
