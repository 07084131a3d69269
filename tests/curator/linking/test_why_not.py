"""`curator linkage` says why keys do not run or link nobody, and when a number tests nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.curator.alignment.circle import align
from tests.curator.linking.registers import registers
from tests.curator.linking.test_number_beside import COMMON, HUB, RULE, with_number
from tests.worlds.studies import attribute_text, linked_text
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.linkage.linkage_report import FormCount, LinkageReport, PassCount
from veiltab.curator.linkage.linkage_text import linkage_json, linkage_text, own_words

NAMES = "given family birth"
ALSO_SEX, ALSO_POSTCODE = "given family birth sex", "given:3 family:3 birth postcode"


def report(*linked: tuple[str, int | None], **more: object) -> LinkageReport:
    passes = tuple(
        PassCount(key=key, runs=count is not None, matches=0 if count is not None else 40, linked=count or 0, left=9)
        for key, count in linked
    )
    links = sum(count or 0 for _, count in linked)
    known: Any = {"passes": passes, "links": links, "rows": 1000, "hub_rows": 1000, "is_hub": False}
    return LinkageReport(**(known | more))


@pytest.mark.parametrize(
    ("linked", "silent"),
    [
        (((ALSO_SEX, 0), (NAMES, 900)), "sex"),
        (((ALSO_SEX, 0), (ALSO_POSTCODE, 0), (NAMES, 900)), "postcode,sex"),
        (((NAMES, 900), (ALSO_SEX, 0), (ALSO_POSTCODE, 0)), ""),
        (((NAMES, 900), (ALSO_SEX, 0), ("given:1 family birth", 20)), ""),
        (((ALSO_SEX, 3), (NAMES, 900)), ""),
        (((ALSO_SEX, None), (NAMES, 900)), ""),
        (((ALSO_SEX, 0), (NAMES, 0)), ""),
    ],
)
def test_a_field_without_which_all_link_is_named(linked: tuple[tuple[str, int | None], ...], silent: str) -> None:
    said = linkage_text(report(*linked), {})
    found = [one.split()[3] for one in said.splitlines() if one.startswith("No key with")]
    assert ",".join(found) == silent


def test_keys_of_swapped_dates_are_compared_with_all_of_whole_ones() -> None:
    swaps = "given+family birth:year birth:month+birth:day"
    for linked, said in (
        (((ALSO_SEX, 3), (NAMES, 40), (swaps, 20)), False),
        (((ALSO_SEX, 3), (NAMES, 4), (swaps, 20)), True),
    ):
        assert ("swaps names, or day and month" in linkage_text(report(*linked), {})) is said


def test_a_key_that_does_not_run_comes_with_the_reason() -> None:
    reason = "names values, such as UNKNOWN or a guessed date, that too many rows share"
    assert reason in linkage_text(report((ALSO_SEX, None), (NAMES, 900)), {})
    assert reason not in linkage_text(report((ALSO_SEX, 10), (NAMES, 900)), {})
    absent = linkage_text(report((ALSO_SEX, None), (NAMES, 900)), {}, {ALSO_SEX: "needs sex, which bob lacks"})
    assert "not here: needs sex, which bob lacks" in absent
    assert "No key with" not in linkage_text(report((ALSO_SEX, 0), (NAMES, 900)), {}, {ALSO_SEX: "needs sex"})


def test_postcodes_that_no_pair_has_alike_are_named() -> None:
    other = linkage_text(report((NAMES, 900), agreed=(0, 880, 3, 0, 0, 0), pairs=900, dated=(1000, 1000)), {})
    assert "Of 880 linked pairs whose names and birth date agree 0 agree on the postcode" in other
    assert "estimated recall: unknown; no linked pair agrees on all of given name, family name, date" in other
    alike = linkage_text(report((NAMES, 900), agreed=(800, 880, 810, 0, 0, 0), pairs=900, dated=(1000, 1000)), {})
    assert "agree on the postcode" not in alike


@pytest.mark.parametrize(
    ("key", "held"),
    [("given:3 family:sound birth", "given"), ("given~ family birth", "family"), (NAMES, "given or family")],
)
def test_a_name_that_every_key_takes_makes_the_recall_too_high(key: str, held: str) -> None:
    counts: Any = {"agreed": (800, 880, 810, 0, 0, 0), "pairs": 900, "dated": (1000, 1000)}
    said = linkage_text(report((NAMES, 900), (key, 0), ("birth sex", 0), **counts), {}, {"birth sex": "needs sex"})
    assert f"people whose {held} name is written" in said


@pytest.mark.parametrize(
    ("forms", "by_number", "shown"),
    [
        ((("99999", 400, 396), ("9999999", 500, 4)), (900, 400), ("99999",)),
        ((("99999", 400, 20), ("9999999", 500, 30)), (900, 50), ()),
        ((("999", 9, 9), ("9999999", 500, 2)), (509, 11), ()),
        ((("999", 12, 12), ("9999999", 500, 40)), (512, 52), ()),
        ((("9999", 90, 90), ("99999", 400, 400)), (490, 490), ("9999", "99999")),
    ],
)
def test_disagreements_of_one_form_make_no_precision(
    forms: tuple[tuple[str, int, int], ...], by_number: tuple[int, int], shown: tuple[str, ...]
) -> None:
    by_form = tuple(FormCount(form=form, tested=tested, differ=differ) for form, tested, differ in forms)
    made = report((NAMES, 900), by_number=by_number, by_form=by_form)
    said, plain = linkage_text(made, {}), linkage_json(made, {})
    assert tuple(one.form for one in made.written_otherwise) == shown
    assert ("exact interval" in said) is (not shown)
    assert [f"pairs with {form} here" in said for form in shown] == [True] * len(shown)
    assert (plain["precision_by_number"] is None) is bool(shown)


@pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])
def test_numbers_with_a_check_digit_at_one_curator_test_nothing(tmp_path: Path, *, is_private: bool) -> None:
    numbers = [row[-1] for row in HUB[: len(COMMON)]]
    spoke = with_number(COMMON, [one if n % 3 else one and one + "-7" for n, one in enumerate(numbers)])
    with registers(tmp_path, [HUB, spoke], RULE, is_private=is_private) as (alice, bob):
        align(alice, bob)
        assert sum(one.tested for one in bob.report.by_form) == bob.report.by_number[0]
        assert sum(one.differ for one in bob.report.by_form) == bob.report.by_number[1] > 10
        assert "999999" in [one.form for one in bob.report.written_otherwise]
        assert all(one.tested == one.differ for one in bob.report.written_otherwise)
        assert "exact interval" not in linkage_text(bob.report, {})


@pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])
def test_links_by_a_value_that_a_crowd_shares_stand_apart(tmp_path: Path, *, is_private: bool) -> None:
    """Foundlings of the same days are strangers; a card that a dozen share says nothing of anybody."""
    tables = []
    for start in (100, 500):
        found = [("foundling", "found", f"2001-01-{day:02}", "f", f"{start + day}") for day in range(1, 21)]
        cards = ["0000" if n < 12 else f"{7000 + n}" for n in range(60)] + [f"{start + n}" for n in range(20)]
        tables.append(with_number([*COMMON, *found], cards))
    with registers(tmp_path, tables, RULE, is_private=is_private) as (alice, bob):
        align(alice, bob)
        assert (bob.report.crowd, bob.report.by_number) == ((20, 20, 20), (48, 0))
        said, plain = linkage_text(bob.report, {}), linkage_json(bob.report, {})
        assert "links that stand apart: 20. Their key" in said
        assert "differs in 20 of 20 of them. The file for a researcher takes half" in said
        assert plain["links_by_dominating_values"] == 20
        assert "stand apart" not in linkage_text(alice.report, {})


def test_numbers_that_the_hub_writes_otherwise_make_no_precision() -> None:
    written = linked_text(attribute_text("x", "spoke", 'categories = ["p", "q"]'))
    written = written.replace('"postcode"]', '"postcode", "card:number"]').replace("= {", "= { card = 'c',")
    for name, forms in (("hub", '"aa9999999" = 415, "9999999" = 385'), ("spoke", '"9999999" = 800')):
        written = written.replace(f'name = "{name}"\n', f'name = "{name}"\nforms = {{ "card" = {{ {forms} }} }}\n')
    words = own_words(study_from_bytes(written.encode(), ""), "spoke")
    made = report((NAMES, 900), by_number=(600, 280))
    assert "many links are wrong: 415 of 800 rows of hub write card as no row of spoke does." in linkage_text(
        made, *words
    )
    assert linkage_json(made, *words)["precision_by_number"] is None
    assert "exact interval" in linkage_text(made, *words[:2])
