"""Two registers without a common number on this machine: linked, released, and the truth beside both."""

import csv
import json
import subprocess
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.toml_text import toml_text
from veiltab.play.local.asking import client_of, obtain
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import APPROVAL, LocalStudy, free_endpoints
from veiltab.play.registers.name_law import Draws
from veiltab.play.registers.people import FIELDS, ErrorRates, Registers, Row, made_registers
from veiltab.researcher.estimates.estimation import TableEstimate

HUB, SPOKE, RESEARCHER, SERVER = "residents", "clinic", "rosa", "cloud"
REGIONS, ILLNESSES = ("north", "east", "south"), ("none", "mild", "severe")
_MOST_ROWS = 200_000
_TESTED = 1000


@dataclass(frozen=True, kw_only=True)
class LinkOptions:
    """Options of the demonstration.

    Args:
        out: folder for all output; new or empty.
        people: rows of each register; four in five of the people stand in both.
        alignment: "oblivious" or "tokens".
        deletions: deletion passes behind the twelve keys.
        errors: factor of the usual errors of both registers.
        misfiled: share of the clinic's rows that are filed under another patient's name, which no key sees.
        epsilon: of the release, nats.
    """

    out: Path
    people: int = 2000
    alignment: str = "oblivious"
    deletions: int = 0
    errors: float = 1.0
    misfiled: float = 0.1
    epsilon: Decimal = Decimal(2)
    delta: Decimal = Decimal("1e-6")
    seed: str = "demo"

    def __post_init__(self) -> None:
        if not 1000 <= self.people <= _MOST_ROWS:
            raise InvalidInputError(
                f"a register of other than 1,000 to {_MOST_ROWS:,} people was asked for", where="people"
            )
        if not 0 <= self.misfiled <= 0.3:
            raise InvalidInputError("the share of misfiled rows is not from 0 to 0.3", where="misfiled")
        if not 0 <= self.errors <= 5:
            raise InvalidInputError("the factor of errors is not from 0 to 5", where="errors", remedy="1 is usual.")


@dataclass(frozen=True, kw_only=True)
class LinkResult:
    """What the demonstration shows.

    Args:
        report: of the clinic, as `veiltab curator linkage --json` gives it.
        common: people who stand in both registers.
        links: that the rule makes of the two tables; the parties made as many.
        wrong: of these, links of two people.
        twins: of the wrong ones, links of twins.
        tested: links that a clerk compared with the patients' own papers.
        tested_wrong: of these, links to another person, or to a row that is filed under another name.
        corrected: the same with wrong links undone, by the clerk's share.
        linked: the same table of the linked rows without noise, as shares.
        truth: the same of all people who stand in both, each with the right partner and illness.
    """

    report: dict[str, Any]
    common: int
    links: int
    wrong: int
    twins: int
    tested: int
    tested_wrong: int
    estimate: TableEstimate
    corrected: TableEstimate
    linked: NDArray[np.float64]
    truth: NDArray[np.float64]

    @property
    def precision(self) -> float:
        """Share of right links."""
        return 1 - self.wrong / self.links

    @property
    def recall(self) -> float:
        """Share of the people of both registers who are linked with themselves."""
        return (self.links - self.wrong) / self.common

    def covered(self, estimate: TableEstimate) -> int:
        """Return how many cells have an interval that holds the truth."""
        return int(np.count_nonzero((estimate.low <= self.truth) & (self.truth <= estimate.high)))


@dataclass(frozen=True, kw_only=True)
class Values:
    """Attributes of the rows of both tables.

    Args:
        region: of the hub's rows, symbols.
        illness: of the clinic's rows, as they are filed.
        true_illness: of the person whose name stands on each of these rows.
        is_misfiled: which of these rows are about another person.
    """

    region: NDArray[np.int64]
    illness: NDArray[np.int64]
    true_illness: NDArray[np.int64]
    is_misfiled: NDArray[np.bool_]


def run_link(options: LinkOptions, say: Callable[[str], None]) -> LinkResult:
    """Make the registers, start every party, link, release a table, and compare with the truth.

    Args:
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    say(f"making two registers of {options.people:,} people, with errors as clerks make them")
    if options.misfiled:
        say(f"filing {options.misfiled:.0%} of the clinic's rows under another patient's name")
    registers = made_registers(options.people, options.seed, ErrorRates().times(options.errors))
    local, values = prepare(options, registers)
    with local:
        say("starting every party as a process of its own; the registers are linked before the first release")
        local.start_all()
        with client_of(local, RESEARCHER) as client:
            release = obtain(client, ["region", "illness"], options.epsilon, options.delta, say)
            say(f"asking {SPOKE} what it knows of its links")
            report = linkage_report(local, SPOKE)
            say("linking the same tables once more in this process, where the truth is known")
            links = known_links(local, registers)
            if len(links) != report["links"]:
                raise InvalidInputError("the parties linked other rows than the rule", where="demo link")
            tested, tested_wrong = clerk_s_sample(options, registers, values, links)
            share = tested_wrong / tested
            sd = sqrt(max(share, 1 / tested) * (1 - share) / tested)
            estimate, corrected = release.estimate(), release.estimate(linkage_error=f"{share:.6f}:{sd:.6f}")
    wrong = [(hub, row) for hub, row in links.items() if registers.hub_people[hub] != registers.spoke_people[row]]
    twins = sum(int(registers.twins[registers.hub_people[hub]] == registers.spoke_people[row]) for hub, row in wrong)
    partner = {person: row for row, person in enumerate(registers.spoke_people.tolist())}
    right = {hub: partner[one] for hub, one in enumerate(registers.hub_people.tolist()) if one in partner}
    return LinkResult(
        report=report,
        common=registers.common(),
        links=len(links),
        wrong=len(wrong),
        twins=twins,
        tested=tested,
        tested_wrong=tested_wrong,
        estimate=estimate,
        corrected=corrected,
        linked=_shares(values.region, values.illness, links),
        truth=_shares(values.region, values.true_illness, right),
    )


def clerk_s_sample(
    options: LinkOptions, registers: Registers, values: Values, links: dict[int, int]
) -> tuple[int, int]:
    """Return how many links a clerk compares with the patients' own papers, and how many of these are wrong."""
    pairs = list(links.items())
    sample = [pairs[place] for place in Draws(f"clerk {options.seed}").order("links", len(pairs))[:_TESTED].tolist()]
    wrong = sum(
        registers.hub_people[hub] != registers.spoke_people[row] or values.is_misfiled[row] for hub, row in sample
    )
    return len(sample), int(wrong)


def prepare(options: LinkOptions, registers: Registers) -> tuple[LocalStudy, Values]:
    """Write the tables, the study file, the certificates and the policies.

    Returns:
        The study, whose parties are not started, and what the tables hold.
    """
    new_folder(options.out)
    (options.out / "tables").mkdir()
    # What an attribute says of a person goes with the person, so that a wrong link shows.
    count = int(max(registers.hub_people.max(), registers.spoke_people.max())) + 1
    draws = Draws(f"attributes {options.seed}")
    region = draws.below("region", count, 3)
    illness = np.where(draws.uniform("same", count) < 0.5, region, draws.below("illness", count, 3))
    filed = true_illness = illness[registers.spoke_people]
    is_misfiled = draws.uniform("misfiled", len(filed)) < options.misfiled
    filed = filed.copy()
    filed[is_misfiled] = filed[is_misfiled][draws.order("filed", int(is_misfiled.sum()))]
    values = Values(
        region=region[registers.hub_people], illness=filed, true_illness=true_illness, is_misfiled=is_misfiled
    )
    paths = {
        HUB: _write(options.out / "tables", HUB, registers.hub, "region", [REGIONS[one] for one in values.region]),
        SPOKE: _write(
            options.out / "tables", SPOKE, registers.spoke, "illness", [ILLNESSES[one] for one in values.illness]
        ),
    }
    text = toml_text(study_tables(options))
    policies = dict.fromkeys((HUB, SPOKE), APPROVAL)
    return LocalStudy.made_in(options.out, text.encode(), tables=paths, policies=policies), values


def study_tables(options: LinkOptions) -> dict[str, Any]:
    """Return the study file as plain data."""
    ends = free_endpoints((HUB, SPOKE, SERVER, RESEARCHER))
    identity = {name: name for name in FIELDS}
    return {
        "study": {
            "id": "linked-registers",
            "title": "People of two registers without a common number",
            "hub": HUB,
            "alignment": options.alignment,
        },
        "budget": {"epsilon": max(Decimal(4), 2 * options.epsilon), "delta": min(4 * options.delta, Decimal("0.01"))},
        "identity": {"fields": list(FIELDS), "deletions": options.deletions},
        "server": {"name": SERVER, "endpoint": ends[SERVER]},
        "curator": [{"name": name, "endpoint": ends[name], "identity": identity} for name in (HUB, SPOKE)],
        "researcher": [{"name": RESEARCHER, "endpoint": ends[RESEARCHER]}],
        "attribute": [
            {"name": "region", "owner": HUB, "categories": list(REGIONS)},
            {"name": "illness", "owner": SPOKE, "categories": list(ILLNESSES)},
        ],
    }


def linkage_report(local: LocalStudy, curator: str) -> dict[str, Any]:
    """Return what a curator knows of its links, by its own command."""
    state = str(local.state_folder(Role.CURATOR, curator))
    command = [*local.launcher, "curator", "linkage", str(local.study_path), "--state", state]
    result = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if result.returncode:
        raise UnavailableError(f"{curator} did not show its links", where="veiltab curator linkage")
    return dict(json.loads(result.stdout))


def known_links(local: LocalStudy, registers: Registers) -> dict[int, int]:
    """Return the links that the rule makes of two tables that are in one place: hub row -> the other one's row."""
    from veiltab.common.linkage.row_keys import normal_rows, pass_keys  # noqa: PLC0415 - not for other demonstrations
    from veiltab.common.linkage.self_match import self_matches  # noqa: PLC0415 - not for other demonstrations
    from veiltab.play.linkage.open_rule import first_candidates, resolve  # noqa: PLC0415 - not for other demonstrations

    identity = local.study.identity
    if identity is None:
        raise InvalidInputError("the study has ids, and links nobody", where="demo link")
    hub, spoke = (
        normal_rows(identity, "ymd", list(zip(*rows, strict=True))) for rows in (registers.hub, registers.spoke)
    )
    steps = tuple(one.step for one in self_matches(identity, hub) if one.does_run)
    passes = ((step.number, pass_keys(step, hub), pass_keys(step, spoke)) for step in steps)
    return resolve(first_candidates(passes, len(spoke)))


def _write(folder: Path, name: str, rows: Sequence[Row], attribute: str, values: Sequence[str]) -> Path:
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*FIELDS, attribute])
        writer.writerows([*row, value] for row, value in zip(rows, values, strict=True))
    return path


def _shares(region: NDArray[np.int64], illness: NDArray[np.int64], links: dict[int, int]) -> NDArray[np.float64]:
    """Return the table of region and illness over some pairs of rows, as shares of the pairs."""
    cells = 3 * region[list(links)] + illness[list(links.values())]
    return np.bincount(cells, minlength=9) / max(len(links), 1)
