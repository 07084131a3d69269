"""Every choice of a request is a keyword of the client's and an option of the command's, and reaches the service."""

import json
import shlex
import sys
from contextlib import nullcontext
from dataclasses import fields, replace
from decimal import Decimal
from enum import Enum
from inspect import signature
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from tests.common.release.other import GOES_WITH, OTHER_REQUEST
from tests.researcher.made_status import made_status
from tests.worlds.parties import ROSA
from veiltab.common.errors import DeniedError, FailedReleaseError, InvalidInputError
from veiltab.common.privacy.planning.noise_split import DEFAULT_SPLIT
from veiltab.common.privacy.planning.planning import FEW_ROWS
from veiltab.common.release.messages.release_messages import request_from_proto
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.tables import Prospect, Workload, linked_tables
from veiltab.common.study.file import Study, load_study
from veiltab.deploy.cli import veiltab
from veiltab.deploy.plan import plan_cli
from veiltab.play.studies.linked_tables import STUDY_FILE
from veiltab.researcher.cli import researcher
from veiltab.researcher.client.client import Client

NOT_CHOSEN = {"release_id", "researcher", "deadline"}
RARE = {"scheme", "stage", "noise-split", "max-pair-epsilon", "canaries", "sampling", "pad", "sample", "repeats"}
CHOICES: dict[str, Any] = {name: value for name, value in OTHER_REQUEST.items() if name not in NOT_CHOSEN}
KEYWORDS = {name: str(value) if isinstance(value, Decimal) else value for name, value in CHOICES.items()}


def asked(study: Study, monkeypatch: pytest.MonkeyPatch, *attributes: str, **keywords: Any) -> ReleaseRequest:  # noqa: ANN401 - of any kind
    """Return the request that a client sends."""
    client = object.__new__(Client)
    client.study, client._timeout = study, 1.0
    client._asker = client.desk = ROSA
    client.service = cast("Any", SimpleNamespace(stub=SimpleNamespace(StartRelease=None)))
    sent: list[Any] = []

    def ask(_method: object, message: Any) -> SimpleNamespace:  # noqa: ANN401 - messages
        sent.append(message)
        return SimpleNamespace(release_id="f" * 32, continued=True)

    monkeypatch.setattr(client, "ask", ask)
    made = client.request(attributes, **keywords)
    (message,) = sent
    assert (made.id, made.continued, message.label) == ("f" * 32, True, keywords.get("label", ""))
    return request_from_proto(message.request, "rosa")


def test_every_choice_is_a_keyword_of_the_client_s(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = {"self", "label", "lifetime_seconds", "workload", "population"}
    keywords = set(signature(Client.request).parameters) - beyond
    assert keywords == set(CHOICES) == {field.name for field in fields(ReleaseRequest)} - NOT_CHOSEN
    plain = asked(study, monkeypatch, "sex", epsilon="0.1")
    for name in keywords - {"attributes"}:
        beside = GOES_WITH.get(name, {})
        chosen: dict[str, Any] = {"epsilon": "0.1", **beside, name: KEYWORDS[name]}
        other = asked(study, monkeypatch, *(() if "tables" in chosen else ("sex",)), **chosen)
        assert getattr(other, name) == CHOICES[name] != getattr(plain, name), name
    assert asked(study, monkeypatch, *CHOICES["attributes"], epsilon="0.1").attributes == ("sex", "salary")


def test_numbers_are_asked_for_as_python_shows_them(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {name: float(value) for name, value in CHOICES.items() if isinstance(value, Decimal)}
    other = asked(study, monkeypatch, "sex", **numbers)
    assert {name: getattr(other, name) for name in numbers} == {name: CHOICES[name] for name in numbers}
    assert asked(study, monkeypatch, "sex", epsilon=1).epsilon == Decimal(1)


def test_one_text_is_no_list_of_attributes(study: Study) -> None:
    with pytest.raises(InvalidInputError, match=r"Write \['sex'\]"):
        study.domain("sex")


def test_a_study_chooses_the_noise_and_the_canaries_where_nobody_else_does(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = asked(study, monkeypatch, "sex", epsilon="0.1")
    assert (plain.noise_split, plain.canaries) == (DEFAULT_SPLIT, None)
    other = replace(study, noise_split=Decimal("0.125"), canaries=0)
    chosen = asked(other, monkeypatch, "sex", epsilon="0.1")
    assert (chosen.noise_split, chosen.canaries) == (Decimal("0.125"), 0)
    differing = asked(other, monkeypatch, "sex", epsilon="0.1", noise_split="0", canaries=3)
    assert (differing.noise_split, differing.canaries) == (Decimal(0), 3)


def test_a_client_chooses_a_fresh_id_each_time_and_gives_a_day(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.researcher.client.client.time.time", lambda: 1_900_000_000)
    first, second = (asked(study, monkeypatch, "sex", epsilon="0.1", label="l") for _ in range(2))
    assert first.release_id != second.release_id
    assert first.text_without_id() == second.text_without_id()
    assert first.deadline == 1_900_000_000 + 86_400


@pytest.fixture
def given(study: Study, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command asks of a client, which asks nobody."""
    choices: dict[str, Any] = {}

    def request(attributes: list[str], **keywords: Any) -> Any:  # noqa: ANN401 - as the client's
        sys.stderr.write("asked\n")
        choices.update(keywords, attributes=tuple(attributes))
        return SimpleNamespace(id="f" * 32, continued=False, status=lambda: choices.get("ended") or made_status())

    choices["client"] = SimpleNamespace(request=request, study=study)
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: nullcontext(choices["client"]))
    return choices


@pytest.mark.parametrize(("state", "refusal"), [("denied", DeniedError), ("failed", FailedReleaseError)])
def test_a_request_that_ends_at_once_is_refused(given: dict[str, Any], state: str, refusal: type[Exception]) -> None:
    given["ended"] = made_status(state=ReleaseState(state), failure="no room")
    ran = CliRunner().invoke(researcher, ["request", "s", "--identity", "pki", "--attributes", "sex", "--epsilon", "1"])
    assert isinstance(ran.exception, refusal)
    assert "no room" in str(ran.exception)


def test_every_choice_is_an_option_of_the_command(given: dict[str, Any]) -> None:
    words = ["request", "study.toml", "--identity", "pki"]
    for name, value in CHOICES.items():
        option = name.replace("_", "-")
        if option in RARE:
            words.extend(["--advanced", f"{option}={value.value if isinstance(value, Enum) else value}"])
            continue
        words.append(f"--{option}")
        match value:
            case True:
                continue
            case (tuple(), *_):
                words.extend(map(",".join, value))
            case tuple():
                words.append(",".join(value))
            case _:
                words.append(str(value))
    ran = CliRunner().invoke(researcher, words, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    assert {name: given[name] for name in KEYWORDS} == KEYWORDS


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--attributes sex", None),
        ("--workload linked", "--workload linked --epsilon 1 --delta 1e-6"),
        ("--workload pairs --attributes 'a b,c'", "--workload pairs --epsilon 1 --delta 1e-6 --attributes 'a b,c'"),
        (
            "--tables sex,age age,salary --advanced repeats=1",
            "--advanced repeats=1 --epsilon 1 --delta 1e-6 --tables sex,age --tables age,salary",
        ),
    ],
)
@pytest.mark.usefixtures("given")
def test_who_asks_for_several_tables_reads_how_to_plan_them(words: str, options: str | None) -> None:
    start = ["request", "study.toml", "--identity", "pki", "--epsilon", "1", "--delta", "1e-6"]
    said = CliRunner().invoke(researcher, [*start, *shlex.split(words)], catch_exceptions=False).stderr
    if options is None:
        assert "plan" not in said
        return
    assert f"veiltab plan --study STUDY.toml --population N {options} says" in said
    planned = {word for word in shlex.split(options) if word.startswith("--")} | {"--study", "--population"}
    assert planned <= {name for parameter in plan_cli.plan.params for name in parameter.opts}


@pytest.mark.parametrize(
    ("words", "fewest", "few"),
    [
        ("--attributes sex,age", 29, "."),
        ("--attributes sex,age", 30, ""),
        ("--attributes sex,age --population 29", 30, ", and at most 29 are sampled."),
        ("--tables sex,age age,salary --advanced sample=29 --population 40", 2, ", and at most 29 are sampled."),
        ("--attributes sex,age --population 30", 2, ""),
        ("--workload pairs --population 3", 2, ""),
    ],
)
def test_who_asks_for_a_table_of_too_many_cells_reads_so_before(
    given: dict[str, Any], study: Study, words: str, fewest: int, few: str
) -> None:
    given["client"].study = replace(study, minimum_population=fewest)
    start = ["researcher", "request", "study.toml", "--identity", "pki", "--epsilon", "1", "--delta", "1e-6", "--json"]
    ran = CliRunner().invoke(veiltab, [*start, *shlex.split(words)], catch_exceptions=False)
    before, asked, _ = ran.stderr.partition("asked\n")
    assert asked
    assert json.loads(ran.stdout)["warnings"] == before.splitlines()
    five = f"6 cells take 30 sampled rows for five each{few} {FEW_ROWS}"
    assert before == (few and f"{five} Ask for fewer attributes, coarser bins, or pairs.\n")


PAIRS = (("sex", "age"), ("sex", "salary"), ("age", "salary"))


def test_a_workload_becomes_the_tables_it_stands_for(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("salary", "sex", "age")
    for workload, repeats in (("pairs", 0), (Workload.LINKED, 3)):
        request = asked(study, monkeypatch, *names, workload=workload, epsilon=1, delta="1e-6")
        assert (request.attributes, request.tables, request.repeats) == (("sex", "age", "salary"), PAIRS, repeats)
    everything = asked(study, monkeypatch, workload="pairs", epsilon=1, delta="1e-6")
    assert everything.attributes == tuple(rule.name for rule in study.attributes)
    listed = asked(study, monkeypatch, tables=[["age", "sex"], ["salary", "age"]], epsilon=1, delta="1e-6")
    assert (listed.attributes, listed.tables) == (("sex", "age", "salary"), (("sex", "age"), ("age", "salary")))
    unknown = Prospect(rows=None, epsilon=None, delta=None)
    many = linked_tables(study, [f"a{number}" for number in range(14)], unknown)
    assert (len(many.tables), many.repeats) == (91, 40)


LINKED = load_study(STUDY_FILE)
NAMES = ("education", "marital", "sex", "salary")


def test_a_request_says_what_is_known_of_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = {"workload": "linked", "epsilon": "1", "delta": "1e-6"}
    many = asked(LINKED, monkeypatch, *NAMES, **choices, population=10**7)
    assert (many.tables, many.repeats) == (tuple(combinations(many.attributes, 3)), 0)
    fewer: list[dict[str, Any]] = [{}, {"population": 10**7, "sample": 200}, {"population": 10**7, "workload": "pairs"}]
    for one in fewer:
        request = asked(LINKED, monkeypatch, *NAMES, **choices | one)
        assert request.tables == tuple(combinations(request.attributes, 2))


def test_triples_stand_alone_where_their_noise_is_small_and_keep_to_the_limits_of_the_study() -> None:
    names = LINKED.domain(NAMES).names
    cells = max(LINKED.domain(triple).cells for triple in combinations(names, 3))

    def planned(rows: int, study: Study = LINKED) -> list[int]:
        tables = linked_tables(study, names, Prospect(rows=rows, epsilon=Decimal(1), delta=Decimal("1e-6")))
        return [sum(len(one) == size for one in tables.tables) for size in (2, 3)]

    found = [planned(rows) for rows in (300, 1000, 3000, 10**4, 3 * 10**4, 10**5, 10**6)]
    assert (found[0], found[-1]) == ([6, 0], [0, 4])
    assert found == sorted(found, key=lambda one: (one[1], -one[0])), "more people, more triples"
    assert [6, 4] in found
    assert planned(10**6, replace(LINKED, maximum_tables=3)) == [6, 0]
    assert planned(10**6, replace(LINKED, maximum_cells=cells - 1)) == [6, 0]
    assert planned(1) == [6, 0]


@pytest.mark.parametrize(
    ("attributes", "choices", "problem"),
    [
        (("sex",), {"workload": "pairs"}, "fewer than three attributes were given"),
        (("sex", "age"), {"workload": "linked"}, "fewer than three attributes were given"),
        (("sex", "age", "sex"), {"workload": "pairs"}, "'sex' twice"),
        (("sex", "age", "wage"), {"workload": "pairs"}, "no attribute 'wage'"),
        (("sex", "age", "salary"), {"workload": "triples"}, "no workload 'triples'.*Known: pairs, linked"),
        (("sex", "age", "salary"), {"workload": "pairs", "delta": None}, "no delta was given for several tables"),
        (("sex", "age", "salary"), {"workload": "pairs", "repeats": 1}, "the repeats of tables were given twice"),
        (("sex", "age", "salary"), {"workload": "pairs", "scheme": "poisson"}, "without replacement"),
        (("sex", "age", "salary"), {"workload": "pairs", "max_pair_epsilon": 2}, "with a cap"),
        (("sex",), {"tables": PAIRS}, "stand alone"),
        ((), {"tables": PAIRS, "workload": "pairs"}, "stand alone"),
        ((), {"tables": [["sex"]]}, "fewer than two tables"),
        ((), {"tables": [["sex", "age"], ["age", "sex"]]}, "a table is listed twice"),
        ((), {"tables": [["sex", "sex"], ["age"]]}, "'sex' twice"),
        ((), {"tables": ["sex", "age"]}, "Write \\['sex'\\]"),
        ((), {"tables": PAIRS, "repeats": 4}, "more tables are to be repeated than there are"),
        (("sex", "age"), {"repeats": 1}, "repeats were asked for of a release of one"),
    ],
)
def test_what_is_no_workload_is_refused_before_anybody_is_asked(
    study: Study, monkeypatch: pytest.MonkeyPatch, attributes: tuple[str, ...], choices: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        asked(study, monkeypatch, *attributes, **({"epsilon": 1, "delta": "1e-6"} | choices))
