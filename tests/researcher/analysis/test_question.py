"""Every option of `veiltab researcher estimate` asks what it says, and what does not go together is refused."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from tests.researcher.analysis.simulated import ADULT, ADULT_DOMAIN, exact, simulated
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, compare, conditional_shares, contrasts
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.regression import regress
from veiltab.researcher.analysis.result import NO_INTERVAL, Analysis
from veiltab.researcher.analysis.subgroups import total_contrasts, totals
from veiltab.researcher.cli import researcher
from veiltab.researcher.estimates.independence import independence
from veiltab.researcher.questions.question import Question, answer

PAIR = ["education", "salary"]
WHOLE = exact(ADULT, ADULT_DOMAIN)
BEFORE = simulated(ADULT, ADULT_DOMAIN, "everyone with much noise", runs=1, seed=81)[0]
MEN, WOMEN = {"sex": ["m"]}, {"sex": ["f"]}


class MadeReleases:
    """A client whose releases have estimates from memory."""

    def __init__(self, **estimates: Table) -> None:
        self._estimates = estimates

    study = SimpleNamespace(title="Wages")

    def release(self, name: str) -> SimpleNamespace:
        def estimate(*choices: object, **keywords: object) -> Table:
            attributes = next((one for one in (*choices, *keywords.values()) if isinstance(one, list | tuple)), None)
            found = self._estimates[name]
            return found if attributes is None else found.marginal(attributes)

        said = {
            "status": lambda: SimpleNamespace(tables=()),
            "respondents": lambda: "n counts all",
            "domain": lambda: self._estimates[name].domain,
        }
        return SimpleNamespace(id=name, estimate=estimate, table=estimate, **said)


def asked(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wages: Table = WHOLE) -> Result:
    client = MadeReleases(wages=wages, before=BEFORE, elsewhere=BEFORE.marginal(["sex"]))
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: nullcontext(client))
    monkeypatch.setattr("veiltab.researcher.commands.tables_cli.status_dict", lambda _: {"release": {"id": "1"}})
    start = ["estimate", "study.toml", "--name", "rosa", "--identity", str(tmp_path), "--release", "wages"]
    return CliRunner().invoke(researcher, [*start, *words], catch_exceptions=False)


CASES: dict[str, Analysis] = {
    "--attributes education,salary --given education": conditional_shares(WHOLE.marginal(PAIR), ["education"]),
    "--attributes education,salary --given education --ratio": contrasts(
        WHOLE.marginal(PAIR), Contrast.RATIO, ["education"]
    ),
    "--attributes education,salary --given education --odds-ratio --reference education=mid": contrasts(
        WHOLE.marginal(PAIR), Contrast.ODDS_RATIO, ["education"], {"education": "mid"}
    ),
    "--given education,sex --attributes education,sex,salary --difference": contrasts(
        WHOLE.marginal(["education", "sex", "salary"]), Contrast.DIFFERENCE, ["education", "sex"]
    ),
    "--total sex=f": totals(WHOLE, [WOMEN]),
    "--total sex=m --total sex=f --ratio": total_contrasts(WHOLE, Contrast.RATIO, [MEN, WOMEN]),
    "--model salary~education": regress(WHOLE, "salary ~ education"),
    "--model salary~education --odds-ratio": regress(WHOLE, "salary ~ education", as_ratios=True),
    "--attributes salary --compare before": compare(WHOLE.marginal(["salary"]), BEFORE.marginal(["salary"])),
    "--attributes education,salary --given education --compare before --ratio": compare(
        WHOLE.marginal(PAIR), BEFORE.marginal(PAIR), Contrast.RATIO, ["education"]
    ),
}


@pytest.mark.parametrize("words", CASES)
def test_options_ask_for_their_analysis(words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = CASES[words]
    shown = json.loads(asked([*words.split(), "--json"], monkeypatch, tmp_path).stdout)
    assert shown["title"] == expected.title
    assert [row["labels"] for row in shown["rows"]] == [row["labels"] for row in expected.records()]
    estimates = np.array([row["estimate"] for row in shown["rows"]], np.float64)
    np.testing.assert_allclose(estimates, expected.estimate, rtol=1e-9)
    assert shown["measured"] is True
    assert (shown["unit"], shown["confidence"]) == (expected.unit.value, 0.95)


def test_independence_is_tested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["--attributes", "education,salary", "--independence", "education", "--confidence", "0.99"]
    shown = json.loads(asked([*words, "--json"], monkeypatch, tmp_path).stdout)
    expected = independence(WHOLE.marginal(PAIR), ["education"], ["salary"], level=0.01)
    assert (shown["left"], shown["right"], shown["level"]) == (["education"], ["salary"], 0.01)
    assert shown["p_value"] == pytest.approx(expected.p_value)
    assert (shown["statistic"], shown["dependent"]) == (pytest.approx(expected.statistic), expected.dependent)
    assert expected.verdict in asked(words, monkeypatch, tmp_path).stdout
    for more, message in (
        (["--given", "salary"], "no other question"),
        (["--independence", "age"], "no attribute 'age'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            asked([*words, *more], monkeypatch, tmp_path)


def test_a_person_reads_a_table_and_a_file_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "shares.csv"
    words = ["--attributes", "education,salary", "--given", "education", "--out", str(out)]
    shown = asked(words, monkeypatch, tmp_path).stdout
    assert shown.splitlines()[0] == "share of salary given education"
    assert shown.splitlines()[2].split() == ["education", "salary", "estimate", "low", "high"]
    assert "Intervals at 95%, each on its own." in shown
    frame = pd.read_csv(out)
    assert list(frame.columns) == [
        "education",
        "salary",
        "estimate",
        "low",
        "high",
        "projected",
        "note",
        "study_digest",
    ]
    np.testing.assert_allclose(frame["estimate"], conditional_shares(WHOLE.marginal(PAIR), ["education"]).estimate)


def test_a_table_of_a_model_is_marked_whatever_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = ModelledTable(domain=ADULT_DOMAIN, raw=WHOLE.raw, population=WHOLE.population)
    for words in ([], ["--given", "sex"], ["--model", "salary ~ sex"], ["--compare", "before"]):
        shown = asked(["--attributes", "sex,salary", *words, "--json"], monkeypatch, tmp_path, wages=model).stdout
        found = json.loads(shown)
        assert found["measured"] is False
        assert {(row["low"], row["high"], row["note"]) for row in found["rows"]} == {(None, None, NO_INTERVAL)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--given", "height"], "no attribute 'height'"),
        (["--ratio"], "a ratio compares groups, and none is named"),
        (["--given", "education", "--model", "salary ~ sex"], "given and model do not go together"),
        (["--total", "sex=m", "--model", "salary ~ sex"], "total and model do not go together"),
        (["--model", "salary ~ sex", "--ratio"], "coefficients, or odds ratios"),
        (["--model", "salary ~ salary"], "both sides"),
        (["--model", "salary + sex"], "expected ~"),
        (["--given", "education", "--reference", "education=mid"], "a reference was given without groups to compare"),
        (["--given", "education", "--ratio", "--reference", "education=mid|low"], "several categories"),
        (["--given", "education", "--ratio", "--reference", "sex=m"], "not among the given"),
        (["--attributes", "salary", "--compare", "wages"], "compared with itself"),
        (["--attributes", "wealth", "--compare", "before"], "^no attribute 'wealth'"),
        (
            ["--attributes", "salary", "--compare", "elsewhere"],
            "^--compare elsewhere: no attribute 'salary'. Known: sex",
        ),
        (["--total", "sex=m", "--compare", "before"], "something else than shares"),
        (["--model", "salary ~ sex", "--compare", "before"], "something else than shares"),
        (["--total", "sex=m", "--total", "sex=f", "--odds-ratio"], "not totals"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        asked(words, monkeypatch, tmp_path)


def test_a_question_without_parts_is_about_the_cells() -> None:
    assert Question().is_plain
    np.testing.assert_allclose(answer(Question(), WHOLE).estimate, WHOLE.raw)
