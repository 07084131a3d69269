"""What is planned and certified has the same digits on every machine.

The digits below were computed once; whatever Python, NumPy and processor run these tests must find them again.
"""

import hashlib
import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from veiltab.common.privacy.cards.card import card_of
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.privacy.planning.workload_prices import workload_mechanisms, workload_prices
from veiltab.common.privacy.pricing.price import price
from veiltab.common.schemes import scheme_of


class Asked(NamedTuple):
    population: int
    cells: int
    epsilon: str
    delta: str | None
    scheme: str = "wor"
    sample: int | None = None
    stage: int | None = None


FEW = (
    Asked(30, 4, "0.5", None),
    Asked(300, 12, "1", "1e-6"),
    Asked(4000, 60, "2", None, "poisson", 1500),
    Asked(200, 12, "2", None, "must.ow", 60, 100),
    Asked(10**6, 100_000, "0.01", "1e-8"),
)
MANY = tuple(
    Asked(n, k, epsilon, delta)
    for n in (12, 200, 48_842, 10**7)
    for k in (2, 60)
    for epsilon in ("0.1", "3")
    for delta in (None, "1e-9")
) + tuple(
    Asked(n, k, epsilon, None, scheme, n // 4, n // 2 if scheme.startswith("must") else None)
    for n in (40, 3000)
    for k in (4, 60)
    for epsilon in ("1", "5")
    for scheme in ("wr", "must.ow", "must.ww", "must.wo")
)
SLACK = Decimal("1e-9")
SIZES = (300, 20_000, 10**6)


def digits(asked: Asked) -> str:
    """Every digit of a plan and of its card."""
    plan = plan_release(
        population=asked.population,
        cells=asked.cells,
        epsilon=Decimal(asked.epsilon),
        delta=None if asked.delta is None else Decimal(asked.delta),
        scheme=asked.scheme,
        sample=asked.sample,
        stage=asked.stage,
    )
    card = card_of(plan.release, delta=plan.delta, pure=plan.pure_epsilon)
    return f"{plan.sample} {plan.mechanism} {[(bound.epsilon, bound.other) for bound in card.bounds]}\n"


def digest(releases: tuple[Asked, ...]) -> str:
    return hashlib.sha256("".join(map(digits, releases)).encode()).hexdigest()


def prices(populations: tuple[int, ...]) -> str:
    """Every digit of what tables may cost, of their mechanisms, and of what these do cost."""
    found = []
    for n in populations:
        scheme = scheme_of("wor", population=n, sample=n)
        planned = workload_prices((4, 60), 2, Decimal(2), Decimal("1e-6"))
        mechanisms = [one for some in workload_mechanisms(scheme, (4, 60), planned) for one in some]
        costs = [
            price(ReleaseDescription(scheme=scheme, cells=one.cells, gamma=one.gamma), SLACK) for one in mechanisms
        ]
        found.append((planned, mechanisms, costs))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def test_plans_and_cards_have_these_digits() -> None:
    assert digest(FEW) == "af88bf0e7b4957bb042597c05c39b056cbb192b034c1dcc5aa8e93027260c1d2"


def test_a_price_has_these_digits() -> None:
    scheme = scheme_of("wor", population=300, sample=300)
    assert price(ReleaseDescription(scheme=scheme, cells=12, gamma=Fraction(9)), SLACK).mu == Decimal("0.14625652")


@pytest.mark.long
def test_prices_have_these_digits() -> None:
    assert prices((300,)) == "e13f7671416ce6a5f7b7dce2bf6f4ab9aa59e6b48a51753151d8248db0cce64f"


@pytest.mark.long
def test_plans_cards_and_prices_are_those_of_a_machine_with_fewer_instructions() -> None:
    instructions = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    older = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(instructions),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA",
        "OPENBLAS_CORETYPE": "Prescott",
    }
    command = "from tests.common.privacy.test_machines import *; print(digest(FEW + MANY), prices(SIZES))"
    there = subprocess.run(
        [sys.executable, "-c", command], env=os.environ | older, capture_output=True, text=True, check=True
    )
    assert there.stdout.split() == [digest(FEW + MANY), prices(SIZES)]
