"""The pages of a researcher and of an analyst, over a service in memory."""

import io
import re
from decimal import Decimal
from html import unescape

import numpy as np
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
    CHARGED_STUDY,
    FAILED,
    LINKED,
    SCRIPT,
    STRANGE,
    WAGES,
    WAITING,
    MadeClient,
    N,
)
from veiltab.common.privacy.pricing.price import price_budget
from veiltab.common.study.file import study_from_bytes


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


def test_numbers_have_means_by_group(enter: Enter) -> None:
    study = study_from_bytes(CHARGED_STUDY.replace(b'["low", "high"]', b'["1000", "3000"]'), "study.toml")
    reader = enter(MadeClient(study=study))
    page = reader.get(f"/releases/{WAGES}/table?attributes=sex")
    assert ">mean of salary<" in page
    women, men = numbers(reader.get(f"/releases/{WAGES}/table?number=mean+salary&given=sex"))
    assert (women[0], men[0]) == ("f", "m")
    assert 1000 < float(women[1]) < float(men[1]) < 3000
    assert float(women[2]) < float(women[1]) < float(women[3])
    ((everybody, middle, *_),) = numbers(reader.get(f"/releases/{WAGES}/table?number=median+salary"))
    assert (everybody, float(middle)) in {("all respondents", 1000), ("all respondents", 3000)}
    name, content = reader.file(f"/releases/{WAGES}/table/csv?number=mean+salary&given=sex")
    assert "-mean-sex-salary" in name
    assert b"estimate" in content
    for wrong in ("mean+sex", "mode+salary", "mean"):
        assert "nothing that the page shows" in text_of(reader.get(f"/releases/{WAGES}/table?number={wrong}", 400))


def test_wrong_links_are_undone_on_a_page(shared: Reader) -> None:
    address = f"/releases/{WAGES}/table?attributes=sex&attributes=salary"
    plain, page = numbers(shared.get(address)), shared.get(f"{address}&links=0.1:0")
    assert "Corrected for wrong links: of the links with bob a share of 0 to 0.1." in text_of(page)
    assert 'value="0.1:0"' in page
    assert "links=0.1%3A0" in page, "files have the same"
    for before, after in zip(plain, numbers(page), strict=True):
        assert before[:2] == after[:2]
        assert before[2] != after[2]
    shares = shared.get(f"/releases/{WAGES}/table?attributes=salary&given=sex&links=0.1")
    assert "Corrected for wrong links" in text_of(shares)
    _, content = shared.file(f"/releases/{WAGES}/table/csv?attributes=sex&attributes=salary&links=0.1")
    assert content != shared.file(f"/releases/{WAGES}/table/csv?attributes=sex&attributes=salary")[1]
    assert "'5%' is no share of wrong links" in text_of(shared.get(f"{address}&links=5%25", 400))


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
        ("find=error&shape=linked&attributes=sex&population=100&epsilon=1&delta=1e-6", "fewer than three attributes"),
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
