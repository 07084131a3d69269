"""The page after NIST SP 800-226: every question of the pyramid, answered from the certificate or said not to be."""

import re
from fractions import Fraction

import pytest

from tests.common.study.test_identity_table import LINKED
from tests.curator.audit.exported_evidence import certificate
from tests.deploy.attest.conftest import Given
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.attest.certified import NOT_STATED, Certified, _below
from veiltab.deploy.attest.nist_page import Answer, _plain

PYRAMID = (
    "Privacy parameter",
    "Variant",
    "Unit of privacy",
    "Properties and composition",
    "Mixing with other data releases",
    "Algorithms and correctness",
    "Utility",
    "Bias",
    "Synthetic data and machine learning",
    "Side channels",
    "Security",
    "Query model",
    "Threat model",
    "Access control",
    "Data collection exposure",
)


def page(given: Given) -> tuple[dict[str, str], str, dict[str, object]]:
    said = given.run("nist", "wages.md")
    text = given.path("wages.md").read_text()
    parts = re.split(r"^### (.*)\n\n\*(?:.*)\*\n\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)), text, said


def test_every_question_has_an_answer_and_what_is_lacking_is_said(given: Given) -> None:
    answers, text, said = page(given)
    assert tuple(answers) == PYRAMID
    assert all(answer.strip() for answer in answers.values())
    assert said["not_all_stated"] == [
        name for name, answer in answers.items() if re.search(rf": {NOT_STATED}\.$", answer.split("\n")[0])
    ]
    assert "analyst | epsilon = 0.955512 (pure)" in text
    assert "substitution" in answers["Unit of privacy"]
    assert "alice 1, bob 1" in answers["Properties and composition"]
    assert "(1000)" in answers["Mixing with other data releases"]
    assert answers["Bias"].startswith("Who is missing")


def test_a_release_without_noise_of_curators_is_not_called_one_that_trusts_nobody(given: Given) -> None:
    answers, _, _ = page(given)
    assert answers["Threat model"].startswith("The server: the guarantee needs an honest one")


def test_several_tables_are_answered_together(given_linked: Given) -> None:
    answers, text, _ = page(given_linked)
    assert "Epsilon 20 at delta 1e-6 for all 4 tables together" in answers["Privacy parameter"]
    assert "2 of the tables may run a second time" in answers["Query model"]
    assert "Approximate" in answers["Variant"]
    assert text.count("\n| ") >= 8


def test_probabilities_of_the_mechanism_are_rounded_down(given: Given) -> None:
    answers, _, _ = page(given)
    assert (
        "with probability at least 0.500000 (the curators replace at least 0.000000"
        in answers["Algorithms and correctness"]
    )


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Fraction(2, 3), "0.666666"),
        (Fraction(1), "1.000000"),
        (Fraction(2**64 - 1, 2**64), "0.999999"),
        (Fraction(0), "0.000000"),
    ],
)
def test_a_share_of_rows_is_never_said_to_be_more_than_it_is(share: Fraction, shown: str) -> None:
    assert _below(share) == shown


def test_an_answer_without_anything_stated_says_so() -> None:
    assert Answer(part="x", question="?").text() == "Not stated by the certificate."
    assert Answer(part="x", question="?", lacks="Who").text() == "Who: not stated by the certificate."
    assert Answer(part="x", question="?", says="A.", lacks="B").text() == "A. B: not stated by the certificate."
    assert Answer(part="x", question="?", says="A.").text() == "A."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>x</b>", r"\<b\>x\</b\>"),
        ("a|b", r"a\|b"),
        ("[x](y)", r"\[x\](y)"),
        ("*a*_b_", r"\*a\*\_b\_"),
        ("a & b", r"a \& b"),
    ],
)
def test_markdown_shows_a_title_as_it_is(text: str, shown: str) -> None:
    assert _plain(text) == shown


def test_forms_say_that_people_were_linked_by_names(study_bytes: bytes) -> None:
    ids = study_from_bytes(study_bytes, "study.toml")
    held = certificate(ids)
    linked = Certified(certificate=held, study=study_from_bytes(LINKED.encode(), "linked.toml"))
    assert "Being present in the table of bob is not protected." in linked.neighbours
    assert "a group of two" in linked.neighbours
    assert "who are linked in the tables of all curators" in linked.sample()
    assert "how many links are wrong" in linked.lacking_people
    plain = Certified(certificate=held, study=ids)
    assert "linked" not in f"{plain.neighbours} {plain.sample()} {plain.lacking_people}"
