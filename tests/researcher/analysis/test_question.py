"""Every question asks what it says, and what is not understood is refused with what is near."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from tests.researcher.analysis.simulated import ADULT, ADULT_DOMAIN, exact, simulated
from tests.worlds.domains import domain_of
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.cli import veiltab
from veiltab.researcher.analysis.comparisons import Table, compare, conditional_shares, contrasts
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.regression import regress
from veiltab.researcher.analysis.result import NO_INTERVAL, Analysis
from veiltab.researcher.analysis.subgroups import total_contrasts, totals
from veiltab.researcher.client.askable import Askable
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.independence import independence
from veiltab.researcher.questions.question import Question
from veiltab.researcher.questions.sentence import parse_question
from veiltab.researcher.survival.follow_up import Ending

PAIR = ["education", "salary"]
WHOLE = exact(ADULT, ADULT_DOMAIN)
BEFORE = simulated(ADULT, ADULT_DOMAIN, "everyone with much noise", runs=1, seed=81)[0]
MEN, WOMEN = {"sex": ["m"]}, {"sex": ["f"]}


class MadeRelease(Askable):
    """A release whose table is in memory."""

    def __init__(self, name: str, whole: Table) -> None:
        self.id, self._whole = name, whole

    def domain(self, **_: object) -> Domain:
        return self._whole.domain

    def table(self, attributes: Sequence[str] = (), **_: object) -> Table:
        return self._whole.marginal(attributes) if attributes else self._whole

    def measured(self, **_: object) -> tuple[TableEstimate, ...]:
        return (exact(ADULT, ADULT_DOMAIN),)

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(tables=())

    def respondents(self) -> str:
        return "n counts all"


def asked(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wages: Table = WHOLE) -> Result:
    tables = {"wages": wages, "before": BEFORE, "elsewhere": BEFORE.marginal(["sex"])}
    client = SimpleNamespace(
        study=SimpleNamespace(title="Wages", identity=None), release=lambda one: MadeRelease(one, tables[one])
    )
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: nullcontext(client))
    monkeypatch.setattr("veiltab.researcher.commands.tables_cli.status_dict", lambda _: {"release": {"id": "1"}})
    start = ["researcher", "estimate", "study.toml", "--identity", str(tmp_path), "--release", "wages"]
    return CliRunner().invoke(veiltab, [*start, *words], catch_exceptions=False)


PEOPLE = Domain(attributes=(*ADULT_DOMAIN.attributes, Attribute(name="age", categories=("1", "2", "3"))))
READ: dict[str, dict[str, Any]] = {
    "": {},
    " education ,sex": {"attributes": ("education", "sex")},
    "sum of age given sex": {"attributes": ("sex", "age"), "sum": "age", "given": ("sex",)},
    "variance of age": {"attributes": ("age",), "variance": "age"},
    "median of age by sex": {"attributes": ("sex", "age"), "quantile": 0.5, "of": "age", "given": ("sex",)},
    "correlation of age and sex": {"attributes": ("age", "sex"), "correlation": ("age", "sex")},
    "linear age ~ sex": {"attributes": ("age", "sex"), "linear": "age ~ sex"},
    "loglinear sex * salary": {"attributes": ("sex", "salary"), "model": "~ sex * salary"},
    "survival age:salary=more by sex until 1.5": {
        "attributes": ("sex", "age", "salary"),
        "survival": Ending(time="age", event="salary", categories=("more",)),
        "given": ("sex",),
        "until": 1.5,
    },
    "independence of salary and sex": {"attributes": ("salary", "sex"), "independence": ("salary",)},
    "difference of mean of age by sex against sex=m": {
        "attributes": ("sex", "age"),
        "mean": "age",
        "given": ("sex",),
        "contrast": Contrast.DIFFERENCE,
        "reference": {"sex": "m"},
    },
}


@pytest.mark.parametrize("sentence", READ)
def test_a_sentence_is_read(sentence: str) -> None:
    read, expected = parse_question(sentence, PEOPLE), Question(**READ[sentence])
    assert set(read.attributes) == set(expected.attributes)
    assert replace(read, attributes=()) == replace(expected, attributes=())


def test_a_method_asks_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MadeRelease, "ask", lambda _, question: question)
    one: Any = MadeRelease("wages", WHOLE)
    models = [one.model(formula) for formula in ("age ~ sex", "sex=m ~ age", "~ sex * age")]
    assert models == ["linear age ~ sex", "logistic sex=m ~ age", "loglinear ~ sex * age"]
    assert [one.shares("sex"), one.shares("sex", "age")] == ["share of sex", "share of sex by age"]
    assert [one.totals("sex=m"), one.ratio("sex", "age")] == ["total of sex=m", "ratio of sex by age"]


def test_a_hazard_ratio_is_read() -> None:
    read = parse_question("ratio of survival age:salary=more ~ sex + education", PEOPLE)
    assert (read.survival and read.survival.formula and read.survival.formula.attributes) == ("sex", "education")
    assert (set(read.attributes), read.contrast) == ({"age", "salary", "sex", "education"}, Contrast.RATIO)


def test_a_longer_name_is_an_attribute() -> None:
    odd = domain_of(**dict.fromkeys(("mean of age", "age", "by"), "12"))
    assert parse_question("mean of age", odd).attributes == ("mean of age",)
    assert parse_question("mean of age by by", odd).given == ("by",)
    assert parse_question("share of age by by", odd).given == ("by",)


WRONG = [
    ("maen of age", r"expected a question or an attribute, but 'maen of age' comes next. Did you mean 'mean of'?"),
    ("mean of aeg by sex", r"expected an attribute, but 'aeg' comes next. Did you mean 'age'?"),
    ("mean of age bye sex", r"expected by or the end, but 'bye sex' comes next"),
    ("ratio of salary by sex against sex=q", "category of sex, but 'q' comes next"),
    ("salary by education against education=mid", "expected by or the end, but 'against education=mid' comes next"),
    ("ratio of sum of age", "'sum of' has no ratio. Leave that out."),
    ("ratio of survival age:salary=more", "'survival' has no ratio"),
    ("quantile 2 of age", "2 is not between 0 and 1"),
    ("logistic salary ~ salary", "both sides"),
    ("logistic salary + sex", "expected ~"),
    ("independence of age and age", "age stands on both sides"),
]


@pytest.mark.parametrize(("sentence", "message"), WRONG)
def test_a_sentence_that_is_not_understood_says_where_and_what_is_near(sentence: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_question(sentence, PEOPLE)
    assert message in str(refused.value)


CASES: dict[str, Analysis] = {
    "share of salary given education": conditional_shares(WHOLE.marginal(PAIR), ["education"]),
    "ratio of share of salary given education": contrasts(WHOLE.marginal(PAIR), Contrast.RATIO, ["education"]),
    "odds ratio of salary given education against education=mid": contrasts(
        WHOLE.marginal(PAIR), Contrast.ODDS_RATIO, ["education"], {"education": "mid"}
    ),
    "total of sex=f": totals(WHOLE, [WOMEN]),
    "ratio of total of sex=m, sex=f": total_contrasts(WHOLE, Contrast.RATIO, [MEN, WOMEN]),
    "logistic salary~education": regress(WHOLE, "salary ~ education"),
    "odds ratio of logistic salary~education": regress(WHOLE, "salary ~ education", as_ratios=True),
    "ratio of salary by education --compare before": compare(
        WHOLE.marginal(PAIR), BEFORE.marginal(PAIR), Contrast.RATIO, ["education"]
    ),
}


@pytest.mark.parametrize("words", CASES)
def test_a_question_asks_for_its_analysis(words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = CASES[words]
    question, *options = words.split(" --")
    more = [word for option in options for word in f"--{option}".split()]
    drawn = tmp_path / "drawn.svg"
    shown = json.loads(asked([question, *more, "--picture", str(drawn), "--json"], monkeypatch, tmp_path).stdout)
    assert shown["title"] == expected.title
    assert [row["labels"] for row in shown["rows"]] == [row["labels"] for row in expected.records()]
    estimates = np.array([row["estimate"] for row in shown["rows"]], np.float64)
    np.testing.assert_allclose(estimates, expected.estimate, rtol=1e-9)
    assert shown["measured"] is True
    assert (shown["unit"], shown["confidence"]) == (expected.unit.value, 0.95)
    assert "<svg" in drawn.read_text("utf-8")


def test_independence_is_tested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["independence of education and salary", "--confidence", "0.99"]
    shown = json.loads(asked([*words, "--json"], monkeypatch, tmp_path).stdout)
    expected = independence(WHOLE.marginal(PAIR), ["education"], ["salary"], level=0.01)
    assert (shown["left"], shown["right"], shown["level"]) == (["education"], ["salary"], 0.01)
    assert shown["p_value"] == pytest.approx(expected.p_value)
    assert (shown["statistic"], shown["dependent"]) == (pytest.approx(expected.statistic), expected.dependent)
    assert expected.verdict in asked(words, monkeypatch, tmp_path).stdout
    with pytest.raises(InvalidInputError, match="--compare: this option does not go with a test"):
        asked([*words, "--compare", "before"], monkeypatch, tmp_path)
    with pytest.raises(InvalidInputError, match=r"release\.test"):
        MadeRelease("wages", WHOLE).ask(words[0])


def test_a_person_reads_a_table_and_a_file_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "shares.csv"
    words = ["share of salary given education", "--out", str(out)]
    shown = asked(words, monkeypatch, tmp_path).stdout
    assert shown.splitlines()[0] == "share of salary given education"
    assert shown.splitlines()[2].split() == ["education", "salary", "estimate", "low", "high"]
    assert "Intervals at 95%, each on its own." in shown
    frame = pd.read_csv(out)
    assert " ".join(frame.columns) == "education salary estimate low high projected note study_digest"
    np.testing.assert_allclose(frame["estimate"], conditional_shares(WHOLE.marginal(PAIR), ["education"]).estimate)


def test_a_table_of_a_model_is_marked_whatever_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = ModelledTable(domain=ADULT_DOMAIN, raw=WHOLE.raw, population=WHOLE.population)
    for words in (["sex, salary"], ["salary by sex"], ["logistic salary ~ sex"], ["salary", "--compare", "before"]):
        shown = asked([*words, "--json"], monkeypatch, tmp_path, wages=model).stdout
        found = json.loads(shown)
        assert found["measured"] is False
        assert {(row["low"], row["high"], row["note"]) for row in found["rows"]} == {(None, None, NO_INTERVAL)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ratio of salary"], "no groups were named for the ratio"),
        (["ratio of salary by education against sex=m"], "not among the given"),
        (["salary", "--compare", "wages"], "compared with itself"),
        (["salary", "--compare", "elsewhere"], "^--compare elsewhere: no attribute 'salary'. Known: sex"),
        (["total of sex=m", "--compare", "before"], "something else than shares"),
        (["correlation of salary and sex", "--compare", "before"], "something else than shares"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        asked(words, monkeypatch, tmp_path)
