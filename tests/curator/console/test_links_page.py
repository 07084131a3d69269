"""The console's page of links, beside what `veiltab curator linkage` says."""

import html
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.common.study.other import CHANGES, FULL
from tests.common.web.browser import Guest, enter
from tests.curator.console.console_seat import ANA, Office, application_of, office_fixture  # noqa: F401 - a fixture
from tests.worlds.parties import ALICE, BOB
from tests.worlds.states import curator_state
from veiltab.common.rpc.parties.identity import Party
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.linkage.linkage_report import LinkageReport, PassCount
from veiltab.curator.linkage.linkages import Linkages, LinkedSample
from veiltab.curator.officer.open_state import OpenedState, open_state

STUDY = FULL.replace(*CHANGES["identity in the place of ids"][:2])
SPOKE = LinkageReport(
    is_hub=False,
    rows=3210,
    hub_rows=4000,
    links=2345,
    passes=(PassCount(key="given family birth", runs=True, matches=4, linked=2001, left=1209),),
)


NO_SAMPLE = LinkedSample(rows=np.empty(0, np.int64), numbers=np.empty(0, np.int64), content_digest="")


@contextmanager
def office_of(folder: Path, report: LinkageReport | None, party: Party = ALICE) -> Iterator[tuple[OpenedState, Guest]]:
    """Open the console of a curator that knows a linkage; its service does not run."""
    path = folder / "study.toml"
    path.write_bytes(STUDY)
    with closing(curator_state(folder / "state", party)) as store:
        if report is not None:
            Linkages(store.connection, store.audit).record("a" * 32, report, NO_SAMPLE)
    with open_state(path, folder / "state", None) as own_state:
        yield own_state, enter(application_of(own_state, StateReader(own_state, path)), ANA)


def text_of(guest: Guest) -> str:
    """Return what the page of links says, without its marks, with single blanks."""
    page = guest.get("/links")
    assert page.status == 200, page.text
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page.text)).split())


def test_sessions_and_those_who_broke_one_are_named(tmp_path: Path) -> None:
    with office_of(tmp_path, None, BOB) as (own_state, ana):
        assert "Nobody is linked yet" in text_of(ana)
        assert "Sessions" not in text_of(ana)
        joins = own_state.store.joins
        for number in range(1, 4):
            joins.begin("a" * 32, "alice", f"{number}", bytes([number]))
            joins.enter("a" * 32, "alice", f"s{number}", b"s")
            joins.count("alice", bytes([number]), 3)
            said = f"alice began {number} of 3"
            assert said in text_of(ana)
            assert (f"{said}; for more, a person has to say" in text_of(ana)) == (number == 3)
        assert "bob began" not in text_of(ana)
        joins.fail("a" * 32, "alice")
        assert "Curator alice sent what no honest spoke sends" in text_of(ana)


def test_links_that_are_made_again_are_the_latest(tmp_path: Path) -> None:
    """As when a person takes a correction of the study file back."""
    with office_of(tmp_path, SPOKE) as (own_state, ana):
        linkages = Linkages(own_state.store.connection, own_state.store.audit)
        for alignment, report in (("b" * 32, replace(SPOKE, links=17)), ("a" * 32, SPOKE)):
            linkages.record(alignment, report, NO_SAMPLE)
            assert f"Linked people {report.links:,}" in text_of(ana)
        assert [entry.event for entry in own_state.store.audit.entries()].count("linked") == 2


def test_a_study_with_ids_has_no_such_page(office: Office) -> None:
    ana = office.enter(ANA)
    assert ana.get("/links").status == 404
    assert ">Links<" not in ana.get("/").text
