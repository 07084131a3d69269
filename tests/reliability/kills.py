"""Random SIGKILLs of random parties while releases run: python -m tests.reliability.kills --minutes 60.

A deployment is two curators, a server and a researcher: processes of this machine, on small tables. Each of its
releases meets two kills, each of a random party at a random moment, and the party is started again at once. Each
deployment adds a line to a record; the next run goes on until each database has had all its releases.
"""

import json
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

import click

from tests.protocol.village import Rules
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, World, launcher, made_world
from tests.reliability.promises import Books, LostReleaseError, ready
from tests.server.cluster import Cluster, reason_to_skip

PARTIES = (ALICE, BOB, CLOUD, ROSA)
NAMES = ("region", "income")
KILLS_EACH = 2
MOMENTS = 1.5
"""Seconds within which a kill falls: what a release takes beside parties that are being started."""
LONGEST = 180.0
"""Seconds after which a release counts as lost."""
RELEASES_EACH = 25
"""Releases of one deployment."""
DATABASES = ("SQLite", "PostgreSQL")
RECORD = Path(__file__).parents[2] / ".reliability" / "kills.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What one deployment showed.

    Args:
        date: when it ended.
        database: of its server.
        seed: of its kills.
        kills: how many there were.
        releases: how many were asked for.
        lost: those that were not ready in time or not charged, each with its reason.
        double: ids of those that were charged, encrypted or published twice.
        unequal: whether the curators' ledgers differ.
    """

    date: str
    database: str
    seed: str
    kills: int
    releases: int
    lost: Sequence[str]
    double: Sequence[str]
    unequal: bool

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.double or self.unequal)


class Record:
    """Deployments so far, one line of JSON each.

    Args:
        path: the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()

    def deployments(self, database: str) -> list[Deployment]:
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        found = [Deployment(**json.loads(line)) for line in lines]
        return [one for one in found if one.database == database]

    def add(self, deployment: Deployment) -> None:
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(deployment)) + "\n")


def killed(world: World, url: str, *, seed: str, releases: int, end: float) -> Deployment:
    """Run releases of a deployment while its parties are killed.

    Args:
        world: its parties; they run.
        url: the server's PostgreSQL; empty for SQLite.
        seed: of parties and moments.
        releases: how many to run.
        end: monotonic time after which no release begins.
    """
    chance = random.Random(seed)  # noqa: S311 - it draws moments
    books, lost = Books(world=world, database=url), list[str]()
    kills = asked = 0
    with ThreadPoolExecutor(1) as researcher:
        while asked < releases and time.monotonic() < end:
            asked += 1
            release = researcher.submit(ready, world, NAMES, epsilon="1", within=LONGEST)
            for _ in range(KILLS_EACH):
                time.sleep(chance.uniform(0, MOMENTS))
                who = chance.choice(PARTIES)
                world.local.kill(*who)
                how = ("env", f"VEILTAB_DATABASE={url}", *world.local.launcher) if who == CLOUD else None
                world.local.start(*who, launcher=how)
                kills += 1
            try:
                books.note(release.result())
            except LostReleaseError as error:
                lost.append(str(error))
    return Deployment(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        database=DATABASES[bool(url)],
        seed=seed,
        kills=kills,
        releases=asked,
        lost=[*lost, *(f"{one}: not charged" for one in books.uncharged())],
        double=books.double(),
        unequal=books.ledgers_differ(),
    )


def run_deployment(url: str, *, seed: str, releases: int, end: float) -> Deployment:
    """Start a deployment, run it, and remove it unless it broke a promise."""
    folder = Path(tempfile.mkdtemp(prefix="veiltab-kills-"))
    world = made_world(folder / "study", people=300, rules=Rules(budget="1000"))
    world.local.launcher = launcher(PACE)
    with world.local:
        for who in PARTIES:
            how = ("env", f"VEILTAB_DATABASE={url}", *world.local.launcher) if who == CLOUD else None
            world.local.start(*who, launcher=how)
        for who in PARTIES:
            world.local.wait_for(*who)
        found = killed(world, url, seed=seed, releases=releases, end=end)
    if found.holds:
        shutil.rmtree(folder)
    else:
        click.echo(f"kept for whoever looks into it: {folder}: {found}", err=True)
    return found


def shares(releases: int) -> Iterator[int]:
    """Divide releases among deployments."""
    while releases > 0:
        yield min(releases, RELEASES_EACH)
        releases -= RELEASES_EACH


def figure(database: str, found: Sequence[Deployment]) -> str:
    """Return what deployments with a database showed, as text."""
    kills, releases = sum(one.kills for one in found), sum(one.releases for one in found)
    lost, double = sum(len(one.lost) for one in found), sum(len(one.double) for one in found)
    equal = sum(not one.unequal for one in found)
    return (
        f"{database}: {kills} kills over {releases} releases, {lost} lost, {double} double,"
        f" ledgers equal in {equal} of {len(found)} deployments"
    )


@click.command(help=__doc__)
@click.option("--database", "names", type=click.Choice(DATABASES), multiple=True, default=DATABASES, show_default=True)
@click.option("--releases", default=1000, show_default=True, help="Releases with each database, those on record too.")
@click.option("--minutes", default=60.0, show_default=True, help="Begin no release after so many minutes.")
@click.option("--deployments", default=3, show_default=True, help="Deployments at a time.")
@click.option("--seed", default="", help="Of parties and moments; a new one if not given.")
@click.option("--record", type=click.Path(path_type=Path), default=RECORD, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print every deployment.")
def main(  # noqa: PLR0913, PLR0917 - one argument an option
    names: tuple[str, ...],
    releases: int,
    minutes: float,
    deployments: int,
    seed: str,
    record: Path,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Run what is missing and print what is on record; exit with 1 if a promise was broken."""
    kept, seed = Record(record), seed or secrets.token_hex(4)
    end = time.monotonic() + 60 * minutes
    click.echo(f"seed {seed}", err=True)

    def run(url: str, number: int, share: int) -> None:
        if time.monotonic() < end:
            found = run_deployment(url, seed=f"{seed}-{number}", releases=share, end=end)
            kept.add(found)
            click.echo(figure(found.database, [found]), err=True)

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(deployments))
        started = []
        for name in names:
            cluster = None
            if name == "PostgreSQL":
                if reason := reason_to_skip():
                    click.echo(f"{name}: {reason}", err=True)
                    continue
                cluster = stack.enter_context(Cluster())
            done = sum(one.releases for one in kept.deployments(name))
            for number, share in enumerate(shares(releases - done), start=len(kept.deployments(name))):
                started.append(pool.submit(run, cluster.new_url() if cluster else "", number, share))
        for one in started:
            one.result()
    found = {name: kept.deployments(name) for name in names}
    lines = [figure(name, deployments) for name, deployments in found.items() if deployments]
    click.echo(json.dumps([asdict(one) for all_ in found.values() for one in all_]) if as_json else "; ".join(lines))
    sys.exit(0 if all(one.holds for all_ in found.values() for one in all_) else 1)


if __name__ == "__main__":
    main()
