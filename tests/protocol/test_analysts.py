"""Analysts over real processes: what they read at their researcher's service, and who refuses them by which words."""

import asyncio
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.protocol.village import FREE
from tests.protocol.world import ALICE, ANA, BOB, CLOUD, RITA, ROSA, Answer, Who, World, made_world
from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.deploy.pki.certificates import issue_party, revoke_certificates
from veiltab.researcher.client.client import Client
from veiltab.researcher.status.access_log import Subject


def command(world: World, verb: str, who: Who, *options: str, as_json: bool = True) -> Answer:
    """Run `veiltab researcher` with some party's name and identity."""
    own = ("--identity", world.local.identity_folder(*who))
    return world.command("researcher", verb, world.local.study_path, *own, *options, as_json=as_json)


def party(world: World, who: Who) -> Party:
    return Party(study=world.local.study.id, role=who[0], name=who[1])


@pytest.fixture(scope="module")
def label(village: World) -> str:
    """A release of Rosa's that is ready."""
    label = village.label()
    with village.client() as client:
        client.request(FREE, epsilon="4", label=label).wait(60)
    return label


def test_an_analyst_reads_what_its_researcher_reads(village: World, label: str) -> None:
    with village.client() as rosa, village.client("ana", role=Role.ANALYST) as ana:
        assert [status.label for status in ana.releases()] == [status.label for status in rosa.releases()]
        mine, hers = ana.release(label), rosa.release(label)
        read, whole = mine.wait(5), hers.status()
        assert replace(read, receipts=()) == replace(whole, receipts=())
        # The counts would tell of the curators' rows.
        assert read.receipts == tuple(replace(one, receipt=None) for one in whole.receipts)
        assert all(one.receipt is not None for one in whole.receipts)
        assert np.array_equal(mine.measurements()[0].counts, hers.measurements()[0].counts)
        assert mine.frame().equals(hers.frame())
        assert mine.rows().value_counts().to_dict() == hers.rows().value_counts().to_dict()
        assert list(mine.rows().columns) == list(FREE)
        release_id = mine.id
        asked = {(a.subject, a.release_id) for a in rosa.accesses() if a.analyst == "ana"}
        assert {(Subject.RELEASES, ""), (Subject.STATUS, release_id), (Subject.COUNTS, release_id)} <= asked


def test_no_count_of_a_test_of_the_server_is_read_by_an_analyst(village: World, label: str, tmp_path: Path) -> None:
    whole, read = (command(village, "status", who, "--release", label).data["receipts"] for who in (ROSA, ANA))
    assert len(whole) == len(read) == 3
    for one, other in zip(whole, read, strict=True):
        assert set(one) - set(other) == {"changed", "tests"}
        assert {name: one[name] for name in other} == other
    text = command(village, "status", ANA, "--release", label, as_json=False).text
    assert "test by curators and desk: all columns together passed, with" in text
    assert "changed in" not in text
    page = tmp_path / "report.html"
    assert command(village, "report", ANA, "--release", label, "--out", str(page)).code == 0
    section = page.read_text("utf-8").partition("Tests of the server")[2].partition("<h2")[0]
    assert "passed" in section
    numbers = set(re.findall(r"(?<![\w.])[\d,]+(?![\w.]\d)", section))  # ids and decimals have digits too
    public = {f"{one[name]:,.0f}" for one in read for name in ("canaries", "expected", "sd")}
    assert numbers <= public | {"0"}  # the table's tabindex
    refused = command(village, "report", ANA, "--release", label, "--out", str(tmp_path / "ana.certificate"))
    assert refused.code == 3
    assert "only researcher rosa may have the certificate, which holds the counts of the tests" in refused.errors
    assert not (tmp_path / "ana.certificate").exists()


def test_an_analyst_is_known_by_its_own_name_alone(village: World, label: str, tmp_path: Path) -> None:
    path, folder = village.local.study_path, village.local.identity_folder
    posing = shutil.copytree(folder(*ANA), tmp_path / "posing")
    for suffix in ("pem", "key"):
        (posing / f"ana.{suffix}").rename(posing / f"rosa.{suffix}")
    with pytest.raises(InvalidInputError, match=r"the certificate of veiltab://village/analyst/ana, not of .*/rosa"):
        Client(path, identity=posing, name="rosa")
    with pytest.raises(NotFoundError, match="a file of the identity is not there"):
        Client(path, identity=folder(*ROSA), name="ana")
    with pytest.raises(InvalidInputError, match="no researcher or analyst 'nobody' in the study"):
        Client(path, identity=folder(*ANA), name="nobody")
    with pytest.raises(InvalidInputError, match="curator alice is no researcher or analyst"):
        Client(path, identity=folder(*ALICE), name="alice")
    with village.client("ari", role=Role.ANALYST) as ari, pytest.raises(NotFoundError, match="no such release"):
        ari.release(label)


@pytest.mark.parametrize("host", [ALICE, BOB, CLOUD, RITA], ids=lambda host: host[1])
def test_nobody_but_its_desk_tells_an_analyst_even_whether_it_serves(village: World, host: Who) -> None:
    async def asked(who: Who, peer: Who) -> None:
        identity = load_identity(village.local.identity_folder(*who), *who)
        await wait_until_serving(identity, party(village, peer), village.local.endpoint(*peer), within=10)

    asyncio.run(asked(ANA, ROSA))
    with pytest.raises(DeniedError, match="not among the parties that may call here"):
        asyncio.run(asked(ANA, host))


def test_an_analyst_s_certificate_that_is_revoked_is_refused_on_the_next_call(tmp_path: Path) -> None:
    """Rosa's service alone runs: an analyst asks nobody else."""
    desk = made_world(tmp_path / "study", people=60)
    study, pki = desk.local.study, desk.local.folder / "pki"
    with desk.local:
        desk.start(ROSA)
        with desk.client("ana", role=Role.ANALYST) as ana:
            assert ana.releases() == ()
            revoke_certificates(study, pki, party=party(desk, ANA))
            with pytest.raises(DeniedError, match="the caller's certificate was revoked"):
                ana.releases()
        issue_party(study, pki, party(desk, ANA))
        with desk.client("ana", role=Role.ANALYST) as renewed:
            assert renewed.releases() == ()
