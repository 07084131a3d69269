"""A curator whose people are told of a request, decide about it together, and show an auditor what they did."""

import json
from pathlib import Path

import pytest

from tests.curator.notice_servers import MailServer, WebServer, serving
from tests.protocol.village import POLICIES
from tests.protocol.world import BOB, ROSA, made_world

ATTRIBUTES = ("region", "health")


@pytest.mark.long
def test_people_are_told_decide_together_and_export_what_they_did(tmp_path: Path) -> None:
    web, mail = WebServer(), MailServer()
    channels = tmp_path / "channels.toml"
    channels.touch(0o600)
    channels.write_text(
        f'web = "json://127.0.0.1:{web.port}"\n'
        f'mail = "mailto://127.0.0.1:{mail.port}/officer@example.org?from=veiltab@example.org"\n'
    )
    notify = f'\n[notify]\nchannels = "{channels}"\n'
    world = made_world(tmp_path / "study", policies={**POLICIES, "bob": f"persons = 2\n{POLICIES['bob']}{notify}"})
    with serving(web), serving(mail), world.local:
        world.local.start_all()
        asked = world.ask(ATTRIBUTES, "--label", "two persons", "--purpose", "who is well")
        release_id = asked.data["release"]["id"]
        world.wait_until(lambda: bool(web.posts and mail.mails))
        lines = json.loads(web.posts[0][1])["message"].splitlines()
        notice = dict(line.split(": ", 1) for line in lines)
        assert (notice["event"], notice["release"], notice["researcher"]) == ("held", release_id, "rosa")
        assert "who is well" not in f"{web.posts}{mail.mails}"
        first = world.curator_command("approve", "bob", "--release", release_id[:6], "--person", "Ana Diaz")
        assert first.data == {"release": release_id, "approved": [], "missing": {"health": 1}}
        again = world.curator_command("approve", "bob", "--release", release_id, "--person", "ana diaz")
        assert (again.code, "has approved health before" in again.errors) == (5, True)
        second = world.curator_command("approve", "bob", "--all", "--person", "Ben Ode", "--reason", "as agreed")
        assert [one["approved"] for one in second.data["releases"]] == [["health"]]
        with world.client() as client:
            client.release(release_id).wait(60)
            client.release(release_id).estimate()
        certificate = tmp_path / "release.certificate"
        own = ("--name", "rosa", "--identity", world.local.identity_folder(*ROSA), "--release", "two persons")
        study = world.local.study_path
        assert world.command("researcher", "certificate", study, *own, "--out", str(certificate)).code == 0
        identity = world.local.identity_folder(*BOB)
        file = tmp_path / "evidence.zip"
        given = ("--identity", identity, "--out", str(file), "--certificate", str(certificate), "--person", "Ana Diaz")
        exported = world.curator_command("evidence", "bob", *map(str, given))
        assert exported.code == 0, exported.errors
        found = world.command("verify", file, "--study", study, "--authority", identity / "ca.pem")
        assert (found.code, found.data["holds"]) == (0, True), found.data
        events = [
            one["event"] for one in world.curator_command("audit", "bob", "--release", release_id).data["entries"]
        ]
        assert events == [*("request received", "decision", "approval", "approval", "decision", "charge", "key given")]
        ledger = world.curator_command("ledger", "bob").data["entries"]
        assert [(one["release"], one["purpose"]) for one in ledger] == [(release_id, "who is well")]
        assert len(web.posts) == len(mail.mails) == 1
