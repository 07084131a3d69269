"""A study of wages in memory, with enough in it to look at: one table, a linked release, and what waits or failed."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np

from tests.conftest import STUDY, spec_with
from tests.made_receipts import made_tests
from tests.researcher.made_client import SCRIPT, MadeClient
from tests.researcher.made_status import made_status, result_of
from tests.researcher.made_workload import workload_with
from veiltab.common.core.domain import Domain
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.spec import ReleaseSpec, TablePlan, release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.researcher.estimates.table_result import design_of
from veiltab.researcher.microdata.comparison import fractions_of
from veiltab.researcher.microdata.redrawing import redrawn
from veiltab.researcher.model.row_drawing import Rows
from veiltab.researcher.status.release_status import Status, TableStatus

N = 24_000
LEVELS = {
    "age": ("under 30", "30 to 44", "45 to 59", "60 and over"),
    "education": ("none", "school", "apprenticeship", "college", "university"),
    "region": ("north", "east", "south", "west", "<b>abroad", "=overseas"),
    "wage": ("under 1,500", "1,500 to 2,499", "2,500 to 3,999", "4,000 and over"),
}
OWNERS = {"age": "alice", "education": "alice", "region": "bob", "wage": "bob"}
NAMES = tuple(LEVELS)
WAGES, LINKED, WAITING, FAILED, SMALL = (f"{number:08x}{number * 7919:024x}" for number in range(11, 16))
TABLES = tuple(f"{number:032x}" for number in range(900, 906))
_ASKED = 1_795_000_000


def study() -> Study:
    head = STUDY[: STUDY.index(b"[[attribute]]")].decode()
    head = head.replace("A survey", "Wages by education and region").replace(
        "epsilon = 1\n", "epsilon = 3\ndelta = 1e-6\n"
    )
    attributes = "".join(
        f'[[attribute]]\nname = "{name}"\nowner = "{OWNERS[name]}"\ncategories = {list(levels)!r}\n'
        for name, levels in LEVELS.items()
    )
    return study_from_bytes((head + attributes).encode(), "study.toml")


def wages_client(role: Role = Role.RESEARCHER) -> MadeClient:
    known, statuses, counts = _releases()
    return MadeClient(study=known, role=role, releases_known=statuses, counts=counts)


@cache
def _releases() -> tuple[Study, tuple[Status, ...], dict[str, tuple[int, ...]]]:
    known, rows, counts = study(), _people(), {}
    one = _spec(known, ("age", "education", "wage"), "0.5")
    counts[WAGES] = _counted(rows, known.domain(("age", "education", "wage")), one)
    small = _spec(known, ("region",), "0.05")
    counts[SMALL] = _counted(rows, known.domain(("region",)), small)
    linked = _linked(known)
    tables = []
    for number, pair in enumerate(combinations(NAMES, 2)):
        counts[TABLES[number]] = _counted(rows, known.domain(pair), linked.table(number))
        tables.append(
            TableStatus(number=number, phase=1, release_id=TABLES[number], state=ReleaseState.READY, attributes=pair)
        )
    receipts = tuple(map(result_of, made_tests(replace(one, canaries=1900)).all_receipts()))
    ready = {"study_digest": known.digest, "delta": "0.000001", "receipts": receipts, "seconds": {"total": 14.2}}
    return known, (
        made_status(
            release_id=SMALL, label="regions", attributes=("region",), granted=("region",), epsilon="0.05",
            spec=release_of(small),
            created=_ASKED, purpose="How many work where", bytes={"a": 40_321}, **ready,
        ),
        made_status(
            release_id=FAILED, label="too much", attributes=NAMES, state=ReleaseState.DENIED, epsilon="2.5",
            created=_ASKED + 80_000, purpose=f"Everything {SCRIPT}", study_digest=known.digest,
            failure="curator bob denied region: Not needed for what the purpose says",
        ),
        made_status(
            release_id=WAGES, label="wages", attributes=("age", "education", "wage"), epsilon="0.5",
            granted=("age", "education", "wage"), spec=release_of(one), created=_ASKED + 200_000,
            purpose="Wages by education, for the yearly report", bytes={"a": 1_240_321}, **ready,
        ),
        made_status(
            release_id=LINKED, label="linked", attributes=NAMES, spec=linked, tables=tuple(tables),
            created=_ASKED + 300_000, purpose="One file for several studies", epsilon="1", **ready,
        ),
        made_status(
            release_id=WAITING, label="", attributes=("education", "region"), state=ReleaseState.REQUESTED,
            epsilon="0.3", delta="0.000001", created=_ASKED + 400_000, study_digest=known.digest,
            purpose="Where people with which education live",
            parties={
                "curator alice": (ReleaseState.APPROVED, ""),
                "curator bob": (ReleaseState.REQUESTED, "1 person must still approve region"),
            },
        ),
    ), counts  # fmt: skip


def _people() -> Rows:
    """Return respondents: wages rise with education and age, regions differ in education."""
    rng = np.random.default_rng(11)
    age = rng.choice(4, N, p=(0.24, 0.33, 0.28, 0.15))
    region = rng.choice(6, N, p=(0.31, 0.12, 0.27, 0.22, 0.06, 0.02))
    education = np.clip(np.rint(rng.normal(1.9 + 0.35 * (region == 0) - 0.15 * (age == 3), 1.1, N)), 0, 4)
    wage = np.clip(np.rint(rng.normal(0.25 + 0.42 * education + 0.28 * np.minimum(age, 2), 0.8, N)), 0, 3)
    return np.stack([age, education, region, wage], axis=1).astype(np.int64)


def _spec(known: Study, names: tuple[str, ...], epsilon: str) -> TableSpec:
    domain = known.domain(names)
    plan = plan_release(population=N, cells=domain.cells, epsilon=Decimal(epsilon), delta=Decimal("1e-6"))
    return spec_with(
        study_digest=known.digest,
        columns=_columns(names),
        population=N,
        sample=N,
        epsilon=Decimal(epsilon),
        delta=Decimal("1e-6"),
        server_replacement=plan.mechanism.server_replacement,
        curator_replacement=plan.mechanism.curator_replacement,
    )


def _linked(known: Study) -> ReleaseSpec:
    plans = []
    for places in combinations(range(4), 2):
        cells = len(LEVELS[NAMES[places[0]]]) * len(LEVELS[NAMES[places[1]]])
        replacement = GammaDiagonal.from_gamma(cells, Fraction(120)).replacement
        plans.append(TablePlan(columns=places, server_replacement=replacement, curator_replacement=0, canaries=8))
    return workload_with(
        study_digest=known.digest, columns=_columns(NAMES), population=N, sample=N, epsilon=Decimal(1),
        tables=tuple(plans), repeated=(), repeats=0,
    )  # fmt: skip


def _columns(names: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(Column(attribute=name, owner=OWNERS[name], size=len(LEVELS[name])) for name in names)


def _counted(rows: Rows, domain: Domain, spec: TableSpec) -> tuple[int, ...]:
    """Return the noisy rows in each cell."""
    axes = tuple(NAMES.index(name) for name in domain.names)
    truth = fractions_of(rows, tuple(len(levels) for levels in LEVELS.values()), axes)
    design = design_of(spec, domain.cells, counted=spec.sample)
    return tuple(redrawn(truth, domain, design, bytes(31) + bytes([len(axes)])).tolist())
