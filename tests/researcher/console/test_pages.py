"""The pages of a researcher and of an analyst, over a service in memory."""

import io
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from html import unescape
from typing import Any, cast
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

from tests.common.web.browser import HOST, Browser
from tests.researcher.console.made_client import (
    FAILED,
    LINKED,
    SCRIPT,
    STRANGE,
    WAGES,
    WAITING,
    MadeClient,
    N,
    statuses,
    study_with_delta,
)
from veiltab.common.errors import UnavailableError
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.privacy.planning.questions import Check
from veiltab.common.privacy.pricing.price import price_budget
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.web.application import ConsoleApplication
from veiltab.researcher.client.client import Client
from veiltab.researcher.console.calculations import Background, Calculations
from veiltab.researcher.console.console import console_of


@dataclass
class Reader:
    """A browser that has entered the console of a client."""

    made: MadeClient
    browser: Browser
    base: str

    def get(self, path: str, status: int = 200) -> str:
        answer = self.browser.get(f"{self.base}{path}")
        assert answer.status == status, answer.text
        return answer.text

    def file(self, path: str) -> tuple[str, bytes]:
        """Return the name and the content of a file."""
        answer = self.browser.get(f"{self.base}{path}")
        assert answer.status == 200, answer.text
        found = re.fullmatch(r'attachment; filename="([a-z0-9._-]+)"', answer.headers["content-disposition"])
        assert found
        return found.group(1), answer.content

    def post(self, path: str, fields: dict[str, Any], status: int = 303) -> str:
        token = re.search(r'name="form_token" value="([^"]+)"', self.get("/"))
        assert token
        answer = self.browser.post(f"{self.base}{path}", fields | {"form_token": token.group(1)})
        assert answer.status == status, answer.text
        return answer.headers["location"].removeprefix(self.base) if status == 303 else answer.text


Enter = Callable[[MadeClient], Reader]


@pytest.fixture(scope="module")
def enter() -> Iterator[Enter]:
    """Enter the consoles of clients; all of them end with the module."""
    ends = []

    def entered(made: MadeClient) -> Reader:
        context = console_of(cast("Client", made))
        ends.append(context)
        application = ConsoleApplication(context.__enter__(), HOST)
        browser, link = Browser(application), urlsplit(application.new_link("rosa"))
        answer = browser.post(f"{link.path}?{link.query}", {})
        assert answer.status == 303, answer.text
        return Reader(made=made, browser=browser, base=answer.headers["location"].rstrip("/"))

    yield entered
    for context in ends:
        context.__exit__(None, None, None)


@pytest.fixture
def reader(enter: Enter) -> Reader:
    return enter(MadeClient())


@pytest.fixture(scope="module")
def shared(enter: Enter) -> Reader:
    """A reader for tests that leave the console as it was."""
    return enter(MadeClient())


def text_of(page: str) -> str:
    """Return what a person reads of a page, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_the_releases_stand_there_with_what_they_wait_for(reader: Reader) -> None:
    page = reader.get("/")
    text = text_of(page)
    assert text.index("old") < text.index("linked") < text.index("wages"), "newest first"
    assert "waits for curator bob: a person decides" in text
    assert "curator bob denied salary" in text
    assert f"{N:,}" in text
    assert "0.5 delta 1e-6" in text
    assert SCRIPT not in page
    assert SCRIPT in text


def test_what_has_ended_is_asked_for_once(reader: Reader) -> None:
    reader.get("/")
    before = reader.made.calls.count("status")
    reader.get("/")
    assert reader.made.calls.count("status") == before + 1


def test_a_release_shows_its_facts_guarantees_tests_and_steps(shared: Reader) -> None:
    text = text_of(shared.get(f"/releases/{WAGES}"))
    for part in (
        f"Respondents n {N:,}",
        "analyst",
        "no protection",
        "curator alice 900 112 ± 10 passed",
        "curators and desk 900 169 ± 12 passed",
        "It took 12.5 s",
    ):
        assert part in text
    assert "n is the number of people who are in every curator's table" in text
    assert "now" not in re.findall(r'<span class="badge wait">(\w+)</span>', shared.get(f"/releases/{WAGES}"))


def test_a_release_that_waits_says_for_whom_and_shows_no_results(shared: Reader) -> None:
    page = shared.get(f"/releases/{WAITING}")
    assert "Waits for curator bob: a person decides." in text_of(page)
    assert SCRIPT not in page
    assert f"/releases/{WAITING}/table" not in page


@pytest.mark.parametrize(
    ("path", "status", "problem"),
    [
        (f"/releases/{'0' * 32}", 404, "there is no such release"),
        ("/releases/nobody", 404, "there is no such release"),
        (f"/releases/{WAITING}/table", 503, "the release is requested; it waits for curator bob: a person decides"),
        (f"/releases/{FAILED}/table", 403, "curator bob denied salary."),
        (f"/releases/{STRANGE}/table?attributes=sex", 400, "has another study file"),
        (f"/releases/{WAGES}/table?attributes=age", 400, "no result of an attribute 'age'"),
        (f"/releases/{WAGES}/table?attributes=sex&given=sex", 400, "nothing is left to ask about"),
        (f"/releases/{WAGES}/table?attributes=sex&confidence=2", 400, "no such choice"),
        (f"/releases/{WAGES}/table?attributes=salary&given=sex&contrast=worse", 400, "no such choice"),
        (
            f"/releases/{WAGES}/table?attributes=salary&given=sex&contrast=ratio&reference=sex%3Dx",
            400,
            "a category of sex",
        ),
        (f"/releases/{WAGES}/table?attributes={SCRIPT}", 400, SCRIPT),
        (f"/releases/{WAGES}/table/exe?attributes=sex", 400, "no such kind of file"),
        (f"/releases/{WAGES}/table/..%2F..%2Fstudy.toml", 404, "no such page"),
        ("/files/..%2Fpasswd", 404, "no such page"),
        ("/files/passwd", 404, "no such file"),
        ("/?page=0", 400, "pages 1 to 1"),
        ("/?page=two", 400, "pages 1 to 1"),
    ],
)
def test_what_is_not_there_is_a_calm_page(shared: Reader, path: str, status: int, problem: str) -> None:
    page = shared.get(path, status)
    assert problem in text_of(page) or problem in unescape(page)
    assert SCRIPT not in page
    assert "Back to the first page" in page or problem == "no such page"


def test_a_service_that_is_away_is_said_with_what_to_do(reader: Reader) -> None:
    reader.made.is_away = True
    text = text_of(reader.get("/", 503))
    assert "researcher rosa: does not answer. Start its service." in text


def numbers(page: str) -> list[list[str]]:
    """Return the rows of the first table of a page's numbers."""
    body = re.search(r"<h2>Numbers</h2>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert body
    return [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body.group(1), re.DOTALL)
    ]


def test_a_measured_table_has_a_picture_intervals_numbers_and_tests(shared: Reader) -> None:
    page = shared.get(f"/releases/{WAGES}/table?attributes=sex&attributes=salary")
    assert ">measured<" in page
    assert page.count("<svg") == 4, "the table and its fields, each for a wide and for a narrow screen"
    assert "style=" not in page, "the content policy allows no style inside"
    rows = numbers(page)
    assert [row[:2] for row in rows] == [["f", "low"], ["f", "high"], ["m", "low"], ["m", "high"]]
    for row in rows:
        low, high = (float(end.rstrip("%")) for end in row[4].split(" to "))
        assert low < float(row[2].rstrip("%")) < high
    assert "sex \N{MULTIPLICATION SIGN} salary" in text_of(page)


def test_shares_given_others_and_their_contrasts(shared: Reader) -> None:
    given = numbers(shared.get(f"/releases/{WAGES}/table?attributes=salary&given=sex"))
    assert [row[:2] for row in given] == [["f", "low"], ["f", "high"], ["m", "low"], ["m", "high"]]
    assert float(given[0][2].rstrip("%")) + float(given[1][2].rstrip("%")) == pytest.approx(100, abs=0.2)
    path = f"/releases/{WAGES}/table?attributes=salary&given=sex&contrast=difference"
    first, second = (numbers(shared.get(f"{path}&reference=sex%3D{one}"))[0] for one in ("f", "m"))
    assert (first[0], second[0]) == ("m", "f")
    assert float(first[2].rstrip("%")) == -float(second[2].rstrip("%"))
    for row in (first, second):
        low, value, high = (float(row[column].rstrip("%")) for column in (3, 2, 4))
        assert low < value < high


def test_a_table_that_was_not_measured_is_marked_and_has_no_interval(shared: Reader) -> None:
    path = f"/releases/{LINKED}/table?attributes=sex&attributes=age&attributes=salary"
    page = shared.get(path)
    assert ">from a model<" in page
    assert "none has all of these attributes" in text_of(page)
    assert all(row[4] == "-" and row[5] == "-" for row in numbers(page))
    assert ">measured<" in shared.get(f"/releases/{LINKED}/table?attributes=sex&attributes=age")


def test_files_have_safe_names_and_the_page_s_numbers(shared: Reader) -> None:
    query = "attributes=sex&attributes=salary"
    name, data = shared.file(f"/releases/{WAGES}/table/csv?{query}")
    assert name == "wages-sex-salary.csv"
    frame = pd.read_csv(io.BytesIO(data))
    assert (frame["low"] < frame["high"]).all()
    assert frame["estimate"].sum() == pytest.approx(1.0)
    assert set(frame["study_digest"]) == {shared.made.study.digest}
    _, whole = shared.file(f"/releases/{WAGES}/table/parquet?{query}")
    assert np.allclose(pd.read_parquet(io.BytesIO(whole))["estimate"], frame["estimate"])
    _, given = shared.file(f"/releases/{WAGES}/table/csv?attributes=salary&given=sex&contrast=ratio")
    assert list(pd.read_csv(io.BytesIO(given))["sex"]) == ["m", "m"]
    name, page = shared.file(f"/releases/{WAGES}/report.html")
    assert (name, page[:15]) == ("wages-report.html", b"<!DOCTYPE html>")
    assert shared.file(f"/releases/{WAGES}/certificate") == ("wages.certificate", f"certificate of {WAGES}".encode())
    assert shared.file(f"/releases/{LINKED}/certificate") == ("linked.certificate", f"certificate of {LINKED}".encode())
    assert shared.file(f"/releases/{FAILED}/study.toml")[0] == "script-alert-1-script-study.toml"


def test_a_plan_finds_any_number_from_the_others(shared: Reader) -> None:
    one = "shape=table&population=45222&cells=24&epsilon=1&delta=&error=0.02"
    for find, found in (
        ("error", "Error 0.0341"),
        ("epsilon", "Epsilon 1.77"),
        ("population", "132,000"),
        ("cells", "9 cells"),
    ):
        assert found in text_of(shared.get(f"/plan?find={find}&{one}"))
    assert "Delta 5.5e-7" in text_of(
        shared.get("/plan?find=delta&shape=table&population=45222&cells=24&epsilon=1&error=.001")
    )
    several = "shape=pairs&attributes=sex&attributes=age&attributes=salary&population=20000&delta=1e-6"
    text = text_of(shared.get(f"/plan?find=error&{several}&epsilon=1"))
    assert "Tables, cells 3, 16" in text
    parts = [price_budget(Decimal(epsilon), Decimal("1e-6")).mu ** 2 for epsilon in (1, 2)]
    share = re.search(r"It takes about ([\d.]+)% of", text)
    assert share
    assert float(share.group(1)) == pytest.approx(float(100 * parts[0] / parts[1]), rel=0.01)
    assert "sex, age" in text
    assert "Epsilon" in text_of(shared.get(f"/plan?find=epsilon&{several}&error=.02"))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("find=error&shape=table&population=0&cells=24&epsilon=1", "a whole number from 1"),
        ("find=error&shape=table&population=1e9&cells=24&epsilon=1", "a whole number from 1"),
        ("find=error&shape=table&population=100&cells=24&epsilon=0", "epsilon must be a number above 0"),
        ("find=error&shape=table&population=100&cells=24&epsilon=1&delta=nan", "delta must lie between"),
        ("find=error&shape=table&population=100&cells=1&epsilon=1", "a whole number from 2"),
        ("find=epsilon&shape=table&population=100&cells=24&error=2", "between 0 and 1"),
        ("find=epsilon&shape=table&population=100&cells=24&error=nan", "between 0 and 1"),
        ("find=epsilon&shape=table&population=100&cells=24&error=1e-9", "Not to be reached"),
        ("find=truth&shape=table", "no such choice"),
        ("find=error&shape=linked&attributes=sex&population=100&epsilon=1&delta=1e-6", "at least three attributes"),
        ("find=error&shape=pairs&population=100&epsilon=1&delta=", "several tables need a delta"),
        ("find=cells&shape=pairs&population=100&epsilon=1&delta=1e-6&error=.1", "those of their attributes"),
        (f"find=error&shape=table&attributes={SCRIPT}&population=100&epsilon=1", "no attribute"),
    ],
)
def test_a_plan_without_an_answer_says_why_beside_the_form(shared: Reader, query: str, problem: str) -> None:
    page = shared.get(f"/plan?{query}")
    assert problem in text_of(page)
    assert SCRIPT not in page
    assert 'name="population"' in page


def test_the_field_at_fault_is_marked(shared: Reader) -> None:
    page = shared.get("/plan?find=error&shape=table&population=many&cells=24&epsilon=1")
    assert re.findall(r'name="(\w+)"[^>]*aria-invalid="true"', page) == ["population"]


def test_a_search_that_takes_too_long_ends() -> None:
    ticks = iter(range(100))
    calculations = Calculations(seconds=5, clock=lambda: float(next(ticks)))

    def search(check: Check) -> int:
        for _ in range(3):
            check()
        return 7

    def long_search(check: Check) -> int:
        return sum(search(check) for _ in range(10))

    with pytest.raises(UnavailableError, match="longer than 5 seconds"):
        calculations.run(long_search)
    assert calculations.run(search) == 7
    calculations.close()


def test_the_background_keeps_the_last_results_and_tries_again_what_failed() -> None:
    background, runs = Background(), []

    def work(number: int) -> int:
        runs.append(number)
        if runs.count(0) == 1 and number == 0:
            raise UnavailableError("not yet")
        return number

    with pytest.raises(UnavailableError, match="not yet"):
        background.get("a", lambda: work(0), within=10)
    assert background.get("a", lambda: work(0), within=10) == 0
    for number in range(1, 64):
        assert background.get(number, partial(work, number), within=10) == number
    assert background.get("a", lambda: work(0), within=10) == 0
    assert runs.count(0) == 2, "kept"
    background.get(64, partial(work, 64), within=10)
    background.get("a", lambda: work(0), within=10)
    assert runs.count(0) == 3, "the oldest made room"
    waits = threading.Event()
    assert background.get("slow", lambda: waits.wait(10), within=0) is None
    waits.set()
    assert background.get("slow", waits.is_set, within=10) is True


def test_a_work_that_fails_as_a_wait_does_has_failed_all_the_same() -> None:
    background, outcomes = Background(), [TimeoutError("of a file system"), None]

    def work() -> int:
        if failure := outcomes.pop(0):
            raise failure
        return 7

    with pytest.raises(TimeoutError, match="file system"):
        background.get("a", work, within=10)
    assert background.get("a", work, within=10) == 7, "it is tried again"


WISH = {"shape": "table", "attributes": ["sex", "salary"], "population": "20000", "epsilon": "0.5", "delta": "1e-6"}


def test_what_a_release_costs_is_shown_before_it_can_be_asked_for(shared: Reader) -> None:
    first = shared.get("/ask")
    assert 'method="post" class="fields' not in first
    query = "shape=table&attributes=sex&attributes=salary&population=20000&epsilon=0.5&delta=1e-6"
    page = shared.get(f"/ask?{query}")
    text = text_of(page)
    shown = re.search(r"Expected distance of all cells together, root-mean-square ([\d.]+)", text)
    of_cell = re.search(r"Expected error of each cell, root-mean-square ([\d.]+)", text)
    plan = plan_release(population=N, cells=4, epsilon=Decimal("0.5"), delta=Decimal("1e-6"))
    assert shown
    assert plan.root_mse() <= float(shown.group(1)) <= 1.01 * plan.root_mse()
    assert of_cell
    assert plan.root_mse() / 2 <= float(of_cell.group(1)) <= 1.01 * plan.root_mse() / 2, "one of four cells"
    assert re.search(r"It takes about \d[\d.]*% of every curator's budget of epsilon 2 at delta 1e-6", text)
    assert 'method="post" class="fields' in page
    assert "No curator can grant it" in text_of(shared.get(f"/ask?{query.replace('epsilon=0.5', 'epsilon=9')}"))
    assert shared.made.asked == []


def test_a_researcher_asks(reader: Reader) -> None:
    where = reader.post("/ask", WISH | {"purpose": f" {SCRIPT} ", "label": "gap", "partial": "yes"})
    assert where == f"/releases/{WAITING}"
    (asked,) = reader.made.asked
    assert asked["attributes"] == ("sex", "salary")
    assert (str(asked["epsilon"]), str(asked["delta"]), asked["workload"]) == ("0.5", "0.000001", None)
    assert (asked["purpose"], asked["label"], asked["partial"]) == (SCRIPT, "gap", True)
    page = reader.get(where)
    assert "The curators were asked." in page
    assert SCRIPT not in page


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"attributes": []}, "a release has attributes"),
        ({"attributes": ["sex", "age", "height"]}, "no attribute"),
        ({"epsilon": ""}, "this is needed"),
        ({"epsilon": "inf"}, "epsilon must be"),
        ({"shape": "everything"}, "no such choice"),
        ({"purpose": "p" * 501}, "at most 500 characters"),
        ({"label": "l" * 101}, "at most 100 characters"),
    ],
)
def test_what_cannot_be_asked_for_reaches_nobody(shared: Reader, changes: dict[str, Any], problem: str) -> None:
    assert problem in text_of(shared.post("/ask", WISH | {"purpose": "", "label": ""} | changes, status=400))
    assert shared.made.asked == []


def test_an_analyst_reads_and_cannot_ask(enter: Enter) -> None:
    analyst = enter(MadeClient(role=Role.ANALYST))
    page = analyst.get("/")
    assert "Analyst ana" in page
    assert "/ask" not in page
    assert "/ask" not in analyst.get("/plan?find=error&shape=table&attributes=sex&population=100&epsilon=1")
    analyst.get("/ask", 404)
    analyst.post("/ask", WISH | {"purpose": "x"}, status=404)
    assert analyst.made.asked == []
    assert ">measured<" in analyst.get(f"/releases/{WAGES}/table?attributes=sex")


def test_a_certificate_which_holds_counts_is_offered_to_the_researcher_alone(shared: Reader, enter: Enter) -> None:
    analyst = enter(MadeClient(role=Role.ANALYST))
    for release in (WAGES, LINKED):
        assert f"/releases/{release}/certificate" in shared.get(f"/releases/{release}")
        assert "/certificate" not in analyst.get(f"/releases/{release}")


ROWS = {"act": "draw", "attributes": ["sex", "age"], "rows": "1,000", "kind": ".csv", "seed": "census"}


def drawn(reader: Reader, **changes: Any) -> str:  # noqa: ANN401 - any field
    """Draw microdata to the end, and return the page."""
    reader.post(f"/releases/{LINKED}/microdata", ROWS | changes)
    deadline = threading.Event()
    for _ in range(400):
        page = reader.get(f"/releases/{LINKED}/microdata")
        if "data-look-again" not in page:
            return page
        deadline.wait(0.02)
    raise AssertionError(page)


def test_microdata_are_drawn_in_the_background_and_saved(reader: Reader) -> None:
    page = drawn(reader, report="yes")
    names = re.findall(r'href="[^"]*/files/([^"]+)"', page)
    assert names == ["linked-microdata.csv", "linked-microdata.csv.json", "linked-microdata-report.html"]
    assert b"Rows are drawn from a model" in reader.file(f"/files/{names[-1]}")[1]
    frame = pd.read_csv(io.BytesIO(reader.file(f"/files/{names[0]}")[1]))
    assert (list(frame.columns), len(frame)) == (["sex", "age"], 1000)
    (name, *_) = re.findall(r'/files/([^"]+)"', drawn(reader))
    again = pd.read_csv(io.BytesIO(reader.file(f"/files/{name}")[1]))
    assert frame.equals(again), "the same seed draws the same rows"
    (name, *_) = re.findall(r'/files/([^"]+)"', drawn(reader, replicates="yes"))
    weighted = pd.read_csv(io.BytesIO(reader.file(f"/files/{name}")[1]))
    assert list(weighted.columns) == ["sex", "age", "weight", *(f"replicate_{i}" for i in range(1, 21))]
    assert frame.equals(weighted[["sex", "age"]])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rows": "10000001"}, "1 to 10,000,000 rows here, not 10,000,001"),
        ({"rows": "1000001", "replicates": "yes"}, "1 to 1,000,000 rows here, not 1,000,001"),
        ({"rows": "9" * 30}, "a whole number"),
        ({"rows": "-1"}, "a whole number"),
        ({"rows": "0"}, "1 to 10,000,000 rows"),
        ({"attributes": ["sex", "../age"]}, "no attribute '../age'"),
        ({"kind": ".exe"}, "no such choice"),
        ({"act": "burn"}, "no such choice"),
        ({"report": "yes", "attributes": ["sex"]}, "two or more columns"),
        ({"report": "yes", "rows": "1000001"}, "at most 1,000,000 rows"),
        ({"seed": "s" * 101}, "no such choice"),
    ],
)
def test_microdata_that_are_not_drawn(shared: Reader, changes: dict[str, Any], problem: str) -> None:
    assert problem in text_of(shared.post(f"/releases/{LINKED}/microdata", ROWS | changes, status=400))


def test_one_file_after_the_other_and_a_stop(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, whole = threading.Event(), MadeClient.histogram

    def slow(self: MadeClient, release_id: str) -> bytes:
        go_on.wait(10)
        return whole(self, release_id)

    monkeypatch.setattr(MadeClient, "histogram", slow)
    path = f"/releases/{LINKED}/microdata"
    reader.post(path, ROWS)
    assert "drawn already" in text_of(reader.post(path, ROWS, status=409))
    assert "one file after the other" in text_of(reader.get(f"/releases/{WAGES}/microdata"))
    reader.post(path, {"act": "stop"})
    go_on.set()
    for _ in range(400):
        if "was stopped; there are no files" in (page := reader.get(path)):
            break
        threading.Event().wait(0.02)
    assert "was stopped; there are no files" in page
    assert "/files/" not in page


def test_planning_begins_with_the_respondents_of_the_newest_release(shared: Reader, enter: Enter) -> None:
    assert f'value="{N}"' in shared.get("/plan")
    failed = tuple(one for one in statuses(study_with_delta()) if one.release_id == FAILED)
    assert f'value="{N}"' not in enter(MadeClient(releases_known=failed)).get("/plan")


def test_the_first_table_of_a_linked_release_has_attributes_of_two_curators(shared: Reader) -> None:
    ticked = re.findall(r'name="attributes" value="(\w+)" checked', shared.get(f"/releases/{LINKED}"))
    assert ticked == ["sex", "salary"]
