"""The pages on which a researcher plans, asks and draws."""

import io
import re
import threading
from decimal import Decimal
from functools import partial
from typing import Any

import pandas as pd
import pytest

from tests.researcher.console.console_reader import (  # noqa: F401 - fixtures
    Enter,
    Reader,
    enter_fixture,
    reader_fixture,
    shared_fixture,
    text_of,
)
from tests.researcher.console.made_client import (
    FAILED,
    LINKED,
    SCRIPT,
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
from veiltab.common.rpc.parties.identity import Role
from veiltab.researcher.console.calculations import Background, Calculations


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
        ({"attributes": []}, "no attribute was chosen"),
        ({"attributes": ["sex", "age", "height"]}, "no attribute"),
        ({"epsilon": ""}, "nothing was entered here"),
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
        ({"report": "yes", "attributes": ["sex"]}, "of one column"),
        ({"report": "yes", "rows": "1000001"}, "more than 1,000,000 rows"),
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
