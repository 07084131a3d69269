"""An insurer and two hospitals on this machine: joined obliviously, released, and the truth beside the result."""

import csv
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.oblivious.base_transfers import ANSWER_BYTES
from veiltab.common.oblivious.code import COLUMNS
from veiltab.common.oblivious.extension import EXTRA_ROWS
from veiltab.common.oblivious.linear_check import CHECK_BYTES
from veiltab.common.oblivious.store import slots_for
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.toml_text import toml_text
from veiltab.play.local.asking import client_of, progress
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import APPROVAL, LocalStudy, free_endpoints
from veiltab.play.registers.name_law import Draws
from veiltab.researcher.estimates.estimation import TableEstimate

HUB, SERVER, RESEARCHER = "insurer", "cloud", "rosa"
SHARES: Mapping[str, float] = {"north": 0.9, "south": 0.4}
"""Spoke -> share of its people whom the hub has."""

REGIONS, ILLNESSES = ("east", "west", "centre"), ("none", "mild", "severe")
_SECONDS = 1800.0
_MOST_ROWS = 2_000_000


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """Options of the demonstration.

    Args:
        out: folder for all output; new or empty.
        people: rows of each table.
        alignment: "oblivious" or "tokens".
        epsilon: of each release, nats.
    """

    out: Path
    people: int = 20_000
    alignment: str = "oblivious"
    epsilon: Decimal = Decimal(1)
    delta: Decimal = Decimal("1e-6")
    seed: str = "demo"

    def __post_init__(self) -> None:
        if not 1000 <= self.people <= _MOST_ROWS:
            raise InvalidInputError(f"a table has 1,000 to {_MOST_ROWS:,} people", where="people")


@dataclass(frozen=True, kw_only=True)
class SpokeJoin:
    """What one spoke's join came to.

    Args:
        matched: rows of the hub that are of people here, as the spoke alone knows.
        matched_true: how many there are.
        hub_learns: message -> bytes that the hub received of it.
        seconds_cpu: of the spoke's process, from its start until both releases were there; None without /proc.
        estimate: region and illness among the people of the spoke.
        truth: the same without noise, as shares.
    """

    curator: str
    matched: int
    matched_true: int
    hub_learns: Mapping[str, int]
    seconds_cpu: float | None
    estimate: TableEstimate
    truth: NDArray[np.float64]

    @property
    def covered(self) -> int:
        """How many cells have an interval that holds the truth."""
        return int(np.count_nonzero((self.estimate.low <= self.truth) & (self.truth <= self.estimate.high)))


@dataclass(frozen=True, kw_only=True)
class _People:
    """Everybody: where a person is, and what stands there."""

    ids: Mapping[str, NDArray[np.int64]]
    region: NDArray[np.int64]
    illness: NDArray[np.int64]


def run_join(options: JoinOptions, say: Callable[[str], None]) -> list[SpokeJoin]:
    """Make the tables, start every party, join, release a table for each spoke, and compare with the truth.

    Args:
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    say(f"making three tables of {options.people:,} people")
    people = _made_people(options)
    local = _prepared(options, people)
    local.options[Role.CURATOR, HUB] = ("--verbose",)  # so that its log says what it received
    with local:
        say("starting every party as a process of its own; the tables are joined before the first release")
        local.start_all()
        with client_of(local, RESEARCHER) as client:
            estimates = {}
            for spoke in SHARES:
                say(f"{RESEARCHER} asks for region and illness of {spoke}")
                release = client.request(
                    ["region", f"illness-{spoke}"],
                    epsilon=str(options.epsilon),
                    delta=f"{options.delta:f}",
                    purpose="demonstration",
                )
                release.wait(_SECONDS, progress(say))
                estimates[spoke] = release.estimate()
        received = _received(local, options)
        return [
            SpokeJoin(
                curator=spoke,
                matched=_matched(local, spoke),
                matched_true=len(np.intersect1d(people.ids[HUB], people.ids[spoke])),
                hub_learns=received,
                seconds_cpu=local.processor_seconds(Role.CURATOR, spoke),
                estimate=estimate,
                truth=_truth(people, spoke),
            )
            for spoke, estimate in estimates.items()
        ]


def _made_people(options: JoinOptions) -> _People:
    count, draws = options.people, Draws(f"join {options.seed}")
    ids, others = {HUB: np.arange(count)}, count
    for spoke, share in SHARES.items():
        common = round(share * count)
        chosen = draws.order(f"people of {spoke}", count)[:common]
        ids[spoke] = np.concatenate([chosen, np.arange(others, others + count - common)])
        others += count - common
    region = draws.below("region", others, 3)
    illness = np.where(draws.uniform("same", others) < 0.5, region, draws.below("illness", others, 3))
    return _People(ids=ids, region=region, illness=illness)


def _prepared(options: JoinOptions, people: _People) -> LocalStudy:
    """Write the tables, the study file, the certificates and the policies; start nothing."""
    new_folder(options.out)
    (options.out / "tables").mkdir()
    paths = {HUB: _written(options.out, HUB, people.ids[HUB], "region", [REGIONS[one] for one in people.region])}
    for spoke in SHARES:
        values = [ILLNESSES[one] for one in people.illness]
        paths[spoke] = _written(options.out, spoke, people.ids[spoke], f"illness-{spoke}", values)
    ends = free_endpoints((*paths, SERVER, RESEARCHER))
    study: dict[str, Any] = {
        "study": {"id": "join", "title": "An insurer and two hospitals", "hub": HUB, "alignment": options.alignment},
        "budget": {"epsilon": 4 * options.epsilon, "delta": min(8 * options.delta, Decimal("0.01"))},
        "server": {"name": SERVER, "endpoint": ends[SERVER]},
        "curator": [{"name": name, "endpoint": ends[name], "id_columns": ["number"]} for name in paths],
        "researcher": [{"name": RESEARCHER, "endpoint": ends[RESEARCHER]}],
        "attribute": [
            {"name": "region", "owner": HUB, "categories": list(REGIONS)},
            *({"name": f"illness-{one}", "owner": one, "categories": list(ILLNESSES)} for one in SHARES),
        ],
    }
    policies = dict.fromkeys(paths, APPROVAL)
    return LocalStudy.made_in(options.out, toml_text(study).encode(), tables=paths, policies=policies)


def _written(folder: Path, name: str, ids: NDArray[np.int64], attribute: str, values: list[str]) -> Path:
    path = folder / "tables" / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", attribute])
        writer.writerows([f"{one:08d}", values[one]] for one in ids.tolist())
    return path


def _truth(people: _People, spoke: str) -> NDArray[np.float64]:
    """Return the shares of the cells of region and illness among the people whom hub and spoke have."""
    both = np.intersect1d(people.ids[HUB], people.ids[spoke])
    return np.bincount(3 * people.region[both] + people.illness[both], minlength=9) / len(both)


def _matched(local: LocalStudy, spoke: str) -> int:
    """Return what a spoke's own status says of its people."""
    identity = str(local.identity_folder(Role.CURATOR, spoke))
    command = [*local.launcher, "status", str(local.study_path), "--identity", identity, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own command
    return next(int(one["matched"]) for one in json.loads(done.stdout)["work"] if one["kind"] == "alignment")


def _received(local: LocalStudy, options: JoinOptions) -> dict[str, int]:
    """Return message -> bytes that the hub received of each spoke: they follow from the spoke's rows alone.

    Raises:
        IntegrityError: the hub's log says otherwise.
    """
    if options.alignment == "tokens":
        return {}
    rows = EXTRA_ROWS + slots_for(options.people)
    sizes = {"base_answer": ANSWER_BYTES, "columns": COLUMNS * rows // 8, "answer": CHECK_BYTES}
    lines = local.log(Role.CURATOR, HUB).read_text("utf-8").splitlines()
    received = sum(json.loads(line)["bytes"] for line in lines if '"step": "fetch join"' in line)
    if received != len(SHARES) * sum(sizes.values()):
        raise IntegrityError(f"the hub received {received:,} bytes in joins", where="demo join")
    return sizes
