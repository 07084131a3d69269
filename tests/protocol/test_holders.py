"""Three hospitals that hold one attribute, over processes: releases, one that denies it, and one that is away."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from veiltab.common.errors import VeiltabError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.study.toml_text import toml_text
from veiltab.play.local.asking import client_of
from veiltab.play.local.processes import APPROVAL, LocalStudy, free_endpoints

HOSPITALS = ("north", "south", "west")
DENIAL = f'[[rule]]\nresearcher = "rita"\nattributes = ["stays"]\ndecision = "deny"\n\n{APPROVAL}'
PEOPLE, ABSENT = 900, 3
DRAWS = np.random.default_rng(5)
REGION = DRAWS.integers(0, 2, PEOPLE)
STAYS = np.array([DRAWS.choice([0, 1], PEOPLE, p=[0.6, 0.4]) for _ in HOSPITALS])
"""How often each hospital had each person."""


def written(path: Path, names: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture(name="local", scope="module")
def local_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStudy]:
    """An insurer, who is the hub, and three hospitals whose stays are added up."""
    folder = tmp_path_factory.mktemp("hospitals")
    regions = [[f"{person:04d}", "ab"[region]] for person, region in enumerate(REGION)]
    tables = {"insurer": written(folder / "insurer.csv", ["id", "region"], regions)}
    for name, stays in zip(HOSPITALS, STAYS, strict=True):
        rows = [[f"{person:04d}", str(number)] for person, number in enumerate(stays) if number]
        tables[name] = written(folder / f"{name}.csv", ["id", "stays"], [*rows, [f"{name}-alone", "2"]])
    ends = free_endpoints([*tables, "cloud", "rosa", "rita"])
    study = {
        "study": {"id": "stays", "title": "Stays", "hub": "insurer", "alignment": "tokens"},
        "budget": {"epsilon": 100},
        "server": {"name": "cloud", "endpoint": ends["cloud"]},
        "curator": [{"name": name, "endpoint": ends[name], "id_columns": ["id"]} for name in tables],
        "researcher": [{"name": name, "endpoint": ends[name]} for name in ("rosa", "rita")],
        "attribute": [
            {"name": "region", "owner": "insurer", "categories": ["a", "b"]},
            {"name": "stays", "holders": list(HOSPITALS), "several": "sum", "integers": [1, 3]},
        ],
    }
    policies = {name: "others_share = 1\n\n" + (DENIAL if name == "south" else APPROVAL) for name in tables}
    with LocalStudy.made_in(folder, toml_text(study).encode(), tables=tables, policies=policies) as local:
        local.start_all()
        yield local


@pytest.mark.parametrize(
    ("pad", "sampling"), [(Pad.CHACHA20, Sampling.SEED), pytest.param(Pad.OTP, Sampling.SERVER, marks=pytest.mark.long)]
)
def test_what_several_hospitals_hold_is_added_up_and_the_server_tested(
    local: LocalStudy, pad: Pad, sampling: Sampling
) -> None:
    with client_of(local, "rosa") as client:
        release = client.request(("region", "stays"), epsilon="8", delta="1e-3", pad=pad, sampling=sampling)
        status = release.wait(60)
        estimate = release.estimate(absent="shown")
    assert [receipt.tested_by for receipt in status.receipts][1:-1] == [f"curator {name}" for name in HOSPITALS]
    assert all(receipt.passed for receipt in status.receipts)
    total = STAYS.sum(axis=0)
    truth = np.bincount(4 * REGION + np.where(total, total - 1, ABSENT), minlength=8) / PEOPLE
    assert np.abs(estimate.raw - truth).max() < 0.05


def test_one_holder_s_denial_leaves_the_attribute_out(local: LocalStudy) -> None:
    with client_of(local, "rita") as client:
        with pytest.raises(VeiltabError, match="denied: stays"):
            client.request(("region", "stays"), epsilon="8").wait(60)
        status = client.request(("region", "stays"), epsilon="8", partial=True).wait(60)
    assert status.granted == ("region",)
