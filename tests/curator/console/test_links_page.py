"""The console's page of links, beside what `veiltab curator linkage` says."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.common.study.other import CHANGES, FULL
from tests.common.web.browser import HOST, Guest, enter
from tests.curator.console.console_seat import ANA, Office, office_fixture  # noqa: F401 - a fixture
from tests.worlds.parties import ALICE, BOB
from tests.worlds.states import curator_state
from veiltab.common.rpc.parties.identity import Role, load_identity
from veiltab.common.study.file import study_from_bytes
from veiltab.common.web.application import ConsoleApplication
from veiltab.curator.cli import curator
from veiltab.curator.console.books import Books
from veiltab.curator.console.curator_console import curator_console
from veiltab.curator.console.journal import AuditJournal
from veiltab.curator.linkage.linkage_report import LinkageReport, MatchRate, PassCount
from veiltab.curator.linkage.linkages import Linkages, LinkedSample
from veiltab.curator.officer.opened import OpenedState, open_state
from veiltab.deploy.pki.certificates import init_pki

STUDY = FULL.replace(*CHANGES["identity in the place of ids"][:2])
SPOKE = LinkageReport(
    is_hub=False,
    rows=3210,
    hub_rows=4000,
    links=2345,
    passes=(
        PassCount(key="given family birth", runs=True, matches=4, linked=2001, left=1209),
        PassCount(key="given+family birth:year birth:month+birth:day", runs=True, matches=0, linked=355, left=854),
        PassCount(key="given family:1 birth", runs=False, matches=77, linked=0, left=854),
    ),
    rates=(MatchRate(attribute="sex", rows=(1200, 2010), linked=(900, 1445)),),
    ties=31,
    incomplete=17,
)
HUB = replace(
    SPOKE,
    is_hub=True,
    hub_rows=SPOKE.rows,
    passes=tuple(replace(one, linked=None, left=None) for one in SPOKE.passes),
    links=None,
    rates=(),
    ties=0,
)

NO_SAMPLE = LinkedSample(rows=np.empty(0, np.int64), numbers=np.empty(0, np.int64), content_digest="")


@contextmanager
def office_of(folder: Path, name: str, report: LinkageReport | None) -> Iterator[tuple[OpenedState, Guest]]:
    """Open the console of a curator that knows a linkage; its service does not run."""
    path = folder / "study.toml"
    path.write_bytes(STUDY)
    store = curator_state(folder / "state", ALICE if name == "alice" else BOB)
    linkages = Linkages(store.connection, store.audit)
    if report is not None:
        linkages.record("a" * 32, report, NO_SAMPLE)
    store.close()
    init_pki(study_from_bytes(STUDY, ""), folder / "pki")
    identity = load_identity(folder / f"pki/curator-{name}", Role.CURATOR, name)
    with open_state(path, folder / "state", None) as standing:
        console = curator_console(
            Books(standing, path), AuditJournal(store=standing.store), identity=identity, inspect=None
        )
        yield standing, enter(ConsoleApplication(console, HOST), ANA)


def text_of(guest: Guest) -> str:
    """Return what the page of links says, without its marks, with single blanks."""
    page = guest.get("/links")
    assert page.status == 200, page.text
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page.text)).split())


def said_by_command(folder: Path) -> list[str]:
    """Return the paragraphs of `veiltab curator linkage` about how good the links are."""
    words = ["linkage", str(folder / "study.toml"), "--state", str(folder / "state")]
    done = CliRunner().invoke(curator, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.split("\n\n")[-1].split("linked rows in")[0].strip().splitlines()


def test_a_spoke_sees_what_the_command_says(tmp_path: Path) -> None:
    with office_of(tmp_path, "alice", SPOKE) as (_, ana):
        text = text_of(ana)
        picture = re.findall(r"<svg .*?</svg>", ana.get("/links").text, re.DOTALL)[-1]
        lines = said_by_command(tmp_path)
    assert len(lines) == 3
    for said in (
        *lines,
        "Linked people 2,345",
        "Rows of this table 3,210",
        "Rows of the hub 4,000",
        "Rows that tied and are not linked 31",
        "Rows that link, and are left out for a missing value 17",
        "1 given family birth 0.100% 2,001 1,209",
        "3 given family:1 birth 1.925% 0 854 does not run: too many rows of the hub agree",
        "The service says of the alignment: curator alice: no connection",
    ):
        assert said in text
    shares = re.findall(r"(\S+) ([\d,]+) ([\d,]+) (\d+\.\d%)", text.split("Linked rows in each category of sex")[-1])
    assert [share[1:] for share in shares] == [("1,200", "900", "75.0%"), ("2,010", "1,445", "71.9%")]
    bars = [(kind, float(width)) for kind, width in re.findall(r'class="(bar|soft)"[^>]* width="([\d.]+)"', picture)]
    assert [kind for kind, _ in bars] == ["bar", "bar", "soft"]
    assert [width / bars[0][1] for _, width in bars] == pytest.approx([1, 355 / 2001, 0], abs=1e-3)


def test_the_hub_sees_what_it_knows_and_no_links_of_a_key(tmp_path: Path) -> None:
    with office_of(tmp_path, "bob", HUB) as (_, ana):
        text = text_of(ana)
        assert said_by_command(tmp_path)[0] in text
    for said in (
        "The hub does not learn whom it is linked with",
        "Rows of this table 3,210, of the hub",
        "Key Self-match share Note 1 given family birth 0.125% 2 given+family",
    ):
        assert said in text


def test_sessions_and_those_who_broke_one_are_named(tmp_path: Path) -> None:
    with office_of(tmp_path, "bob", None) as (standing, ana):
        assert "Nobody is linked yet" in text_of(ana)
        assert "Sessions" not in text_of(ana)
        joins = standing.store.joins
        for number in range(1, 4):
            joins.begin("a" * 32, "alice", f"{number}", bytes([number]))
            joins.enter("a" * 32, "alice", f"s{number}", b"s", bytes([number]))
            said = f"alice began {number} of 3"
            assert said in text_of(ana)
            assert (f"{said}; for more, a person has to say" in text_of(ana)) == (number == 3)
        assert "bob began" not in text_of(ana)
        joins.fail("a" * 32, "alice")
        assert "Curator alice sent what no honest spoke sends" in text_of(ana)


def test_links_that_are_made_again_are_the_latest(tmp_path: Path) -> None:
    """As when a person takes a correction of the study file back."""
    with office_of(tmp_path, "alice", SPOKE) as (standing, ana):
        linkages = Linkages(standing.store.connection, standing.store.audit)
        for alignment, report in (("b" * 32, replace(SPOKE, links=17)), ("a" * 32, SPOKE)):
            linkages.record(alignment, report, NO_SAMPLE)
            assert f"Linked people {report.links:,}" in text_of(ana)
        assert [entry.event for entry in standing.store.audit.entries()].count("linked") == 2


def test_a_study_with_ids_has_no_such_page(office: Office) -> None:
    ana = office.enter(ANA)
    assert ana.get("/links").status == 404
    assert ">Links<" not in ana.get("/").text
