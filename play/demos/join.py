"""An insurer and hospitals on this machine: joined obliviously, released, and the truth beside the result."""

import csv
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.oblivious.base_transfers import ANSWER_BYTES
from veiltab.common.oblivious.code import COLUMNS
from veiltab.common.oblivious.extension import EXTRA_ROWS
from veiltab.common.oblivious.linear_check import CHECK_BYTES
from veiltab.common.oblivious.store import slots_for
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.toml_text import toml_text
from veiltab.play.local.asking import client_of, obtain
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import APPROVAL, LocalStudy, free_endpoints
from veiltab.play.registers.name_law import Draws
from veiltab.researcher.estimates.estimation import TableEstimate

HUB, SERVER, RESEARCHER = "insurer", "cloud", "rosa"
SHARES: Mapping[str, float] = {"north": 0.9, "south": 0.4}
"""Spoke -> share of its people whom the hub has, where each has an attribute of its own."""

PATIENTS = 0.7
"""Share of the hub's people who are patients, each of one hospital, where hospitals hold one attribute together."""

REGIONS, ILLNESSES = ("east", "west", "centre"), ("none", "mild", "severe")
_MOST_ROWS = 2_000_000
_MOST_HOLDERS = 40


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """Options of the demonstration.

    Args:
        out: folder for all output; new or empty.
        people: rows of each table; of holders, of the hub's.
        holders: so many hospitals hold one attribute together; 0 for two with an attribute each.
        epsilon: of each release, nats.
    """

    out: Path
    people: int = 20_000
    epsilon: Decimal = Decimal(1)
    delta: Decimal = Decimal("1e-6")
    holders: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.holders <= _MOST_HOLDERS:
            raise InvalidInputError(f"0 to {_MOST_HOLDERS} hospitals hold one attribute", where="holders")
        if not 1000 <= self.people <= _MOST_ROWS:
            raise InvalidInputError(
                f"a table of other than 1,000 to {_MOST_ROWS:,} people was asked for", where="people"
            )

    @property
    def attributes(self) -> Mapping[str, tuple[str, ...]]:
        """Attribute -> the spokes that hold it."""
        if self.holders:
            return {"illness": tuple(f"hospital-{number:02d}" for number in range(1, self.holders + 1))}
        return {f"illness-{spoke}": (spoke,) for spoke in SHARES}

    @property
    def spokes(self) -> tuple[str, ...]:
        """The hospitals."""
        return tuple(spoke for holders in self.attributes.values() for spoke in holders)


@dataclass(frozen=True, kw_only=True)
class SpokeJoin:
    """What one spoke's join came to.

    Args:
        rows: of its table.
        matched: rows of the hub that are of people here, as the spoke alone knows.
        matched_true: how many there are.
        hub_learns: message -> bytes that the hub received of it.
        seconds_cpu: of the spoke's process, from its start until all releases were there; None without /proc.
    """

    curator: str
    rows: int
    matched: int
    matched_true: int
    hub_learns: Mapping[str, int]
    seconds_cpu: float | None


@dataclass(frozen=True, kw_only=True)
class JoinedTable:
    """One release.

    Args:
        attribute: of the spokes that hold it.
        estimate: region and this attribute among the people of those spokes.
        truth: the same without noise, as shares.
    """

    attribute: str
    estimate: TableEstimate
    truth: NDArray[np.float64]

    @property
    def l2_error(self) -> float:
        """Euclidean distance of the estimate from the truth."""
        return float(np.linalg.norm(self.estimate.raw - self.truth))

    @property
    def covered(self) -> int:
        """How many cells have an interval that holds the truth."""
        return int(np.count_nonzero((self.estimate.low <= self.truth) & (self.truth <= self.estimate.high)))


@dataclass(frozen=True, kw_only=True)
class JoinResult:
    """Everything that the demonstration shows.

    Args:
        spokes: what the first hospitals say of their joins.
        seconds_cpu: of all curators; None without /proc.
    """

    spokes: list[SpokeJoin]
    tables: list[JoinedTable]
    seconds_cpu: float | None


@dataclass(frozen=True, kw_only=True)
class _People:
    """Everybody: where a person is, and what stands there."""

    ids: Mapping[str, NDArray[np.int64]]
    region: NDArray[np.int64]
    illness: NDArray[np.int64]


def run_join(options: JoinOptions, say: Callable[[str], None]) -> JoinResult:
    """Make the tables, start every party, join, release each attribute of the spokes, and compare with the truth.

    Args:
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    say(f"making the tables of an insurer with {options.people:,} people, and of {len(options.spokes)} hospitals")
    people = _made_people(options)
    local = _prepare(options, people)
    local.options[Role.CURATOR, HUB] = ("--verbose",)  # so that its log says what it received
    with local:
        say("starting every party as a process of its own; the tables are joined before the first release")
        local.start_all()
        with client_of(local, RESEARCHER) as client:
            tables = []
            for attribute, spokes in options.attributes.items():
                say(f"{RESEARCHER} asks for region and {attribute}")
                release = obtain(client, ["region", attribute], options.epsilon, options.delta, say)
                tables.append(
                    JoinedTable(attribute=attribute, estimate=release.estimate(), truth=_truth(people, spokes))
                )
        seconds = {name: local.processor_seconds(Role.CURATOR, name) for name in people.ids}
        received = _received(local, options, people)
        joins = [
            SpokeJoin(
                curator=spoke,
                rows=len(people.ids[spoke]),
                matched=_matches(local, spoke),
                matched_true=len(np.intersect1d(people.ids[HUB], people.ids[spoke])),
                hub_learns=received.get(spoke, {}),
                seconds_cpu=seconds[spoke],
            )
            for spoke in options.spokes[: len(SHARES)]
        ]
        numbers = [one for one in seconds.values() if one is not None]
        return JoinResult(
            spokes=joins, tables=tables, seconds_cpu=sum(numbers) if len(numbers) == len(seconds) else None
        )


def _made_people(options: JoinOptions) -> _People:
    count, draws = options.people, Draws("join")
    ids, others = {HUB: np.arange(count)}, count
    for number, spoke in enumerate(options.spokes):
        if options.holders:
            patients = draws.order("patients", count)[: round(PATIENTS * count)][number :: options.holders]
            alone = len(patients) // 10
        else:
            patients = draws.order(f"people of {spoke}", count)[: round(SHARES[spoke] * count)]
            alone = count - len(patients)
        ids[spoke] = np.concatenate([patients, np.arange(others, others + alone)])
        others += alone
    region = draws.below("region", others, 3)
    illness = np.where(draws.uniform("same", others) < 0.5, region, draws.below("illness", others, 3))
    return _People(ids=ids, region=region, illness=illness)


def _prepare(options: JoinOptions, people: _People) -> LocalStudy:
    """Write the tables, the study file, the certificates and the policies; start nothing."""
    new_folder(options.out)
    (options.out / "tables").mkdir()
    paths = {HUB: _write(options.out, HUB, people.ids[HUB], "region", [REGIONS[one] for one in people.region])}
    values = [ILLNESSES[one] for one in people.illness]
    attributes = []
    for attribute, spokes in options.attributes.items():
        several = {"holders": list(spokes), "several": "apart"} if len(spokes) > 1 else {"owner": spokes[0]}
        attributes.append({"name": attribute, **several, "categories": list(ILLNESSES)})
        for spoke in spokes:
            paths[spoke] = _write(options.out, spoke, people.ids[spoke], attribute, values)
    ends = free_endpoints((*paths, SERVER, RESEARCHER))
    study: dict[str, Any] = {
        "study": {"id": "join", "title": "An insurer and hospitals", "hub": HUB},
        "budget": {"epsilon": 4 * options.epsilon, "delta": min(8 * options.delta, Decimal("0.01"))},
        "server": {"name": SERVER, "endpoint": ends[SERVER]},
        "curator": [{"name": name, "endpoint": ends[name], "id_columns": ["number"]} for name in paths],
        "researcher": [{"name": RESEARCHER, "endpoint": ends[RESEARCHER]}],
        "attribute": [{"name": "region", "owner": HUB, "categories": list(REGIONS)}, *attributes],
    }
    policies = dict.fromkeys(paths, APPROVAL)
    return LocalStudy.made_in(options.out, toml_text(study).encode(), tables=paths, policies=policies)


def _write(folder: Path, name: str, ids: NDArray[np.int64], attribute: str, values: list[str]) -> Path:
    path = folder / "tables" / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", attribute])
        writer.writerows([f"{one:08d}", values[one]] for one in ids.tolist())
    return path


def _truth(people: _People, spokes: Sequence[str]) -> NDArray[np.float64]:
    """Return the shares of the cells of region and illness among the people whom the hub and one of the spokes have."""
    patients = np.intersect1d(people.ids[HUB], np.concatenate([people.ids[spoke] for spoke in spokes]))
    return np.bincount(3 * people.region[patients] + people.illness[patients], minlength=9) / len(patients)


def _matches(local: LocalStudy, spoke: str) -> int:
    """Return what a spoke's own status says of its people."""
    identity = str(local.identity_folder(Role.CURATOR, spoke))
    command = [*local.launcher, "status", str(local.study_path), "--identity", identity, "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own command
    return next(int(one["matched"]) for one in json.loads(result.stdout)["work"] if one["kind"] == "alignment")


def _received(local: LocalStudy, options: JoinOptions, people: _People) -> dict[str, dict[str, int]]:
    """Return spoke -> message -> bytes that the hub received of it: they follow from the spoke's rows alone.

    Raises:
        IntegrityError: the hub's log says otherwise.
    """
    sizes = {}
    for spoke in options.spokes:
        rows = EXTRA_ROWS + slots_for(len(people.ids[spoke]))
        sizes[spoke] = {"base_answer": ANSWER_BYTES, "columns": COLUMNS * rows // 8, "answer": CHECK_BYTES}
    lines = local.log(Role.CURATOR, HUB).read_text("utf-8").splitlines()
    total = sum(json.loads(line)["bytes"] for line in lines if '"step": "fetch join"' in line)
    if total != sum(sum(one.values()) for one in sizes.values()):
        raise IntegrityError(f"the hub received {total:,} bytes in joins", where="demo join")
    return sizes
