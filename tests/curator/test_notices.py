"""Notices to the people in charge: when there is one, that it says little, and how it leaves."""

import time
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import request_with, reserve, spec_with
from tests.curator.told_people import (  # noqa: F401 - fixtures
    AGAIN,
    AUTHORITY,
    FACTS,
    ID,
    IDENTITY,
    NOTICE,
    NOW,
    OTHER,
    hold,
    settings,
    source,
    store_fixture,
    to,
)
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.notify.channels import channels_of
from veiltab.curator.notify.outbox import Outbox, next_attempt
from veiltab.curator.officer.notify_settings import Kind, NotifySettings
from veiltab.curator.officer.policy import load_policy
from veiltab.curator.records.store import CuratorStore

DAY = 86_400


WANTED = '[notify]\nchannels = "channels.toml"\n'


def test_a_policy_says_who_is_told(tmp_path: Path) -> None:
    found = settings(tmp_path, WANTED)
    assert (found.channels, found.authority) == (tmp_path / "channels.toml", None), "beside the policy file"
    assert (found.budget, found.certificate_days) == (Decimal("0.8"), 30)
    assert found.events == set(Kind) - {Kind.TEST}
    found = settings(tmp_path, WANTED + 'events = ["held"]\nbudget = 0.5\ncertificate_days = 7\nca = "ca.pem"\n')
    assert (set(found.events), found.budget, found.certificate_days) == ({Kind.HELD}, Decimal("0.5"), 7)
    assert found.authority == tmp_path / "ca.pem"
    assert load_policy(None, researchers=[], attributes=[]).notify is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[notify]\nbudget = 0.5", "channels is not there"),
        (WANTED + "chanels = 'x'", "unknown key 'chanels'. Did you mean 'channels'"),
        ("notify = 5", "another kind"),
        (WANTED + "events = ['helt']", "unknown events: helt"),
        (WANTED + "events = ['test']", "unknown events: test"),
        (WANTED + "budget = 0", "a part of the budget"),
        (WANTED + "budget = 1.1", "a part of the budget"),
        (WANTED + "certificate_days = 0", "whole number from 1 to 3650"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        settings(tmp_path, text)


@pytest.mark.parametrize(
    "url",
    [
        "mailtos://u:s3cret@b.org/a@b.org?from=v@b.org&mode=ssl&smtp=mail.b.org",
        "jsons://u:s3cret@a.org/x?+Authorization=Bearer",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#c",
        "workflows://h.example.org:443/workflow/signature",
        "mmosts://h.org/3ccdd113474722377935511fc85d3dd4",
        "ntfys://ntfy.example.org/topic",
    ],
)
def test_notices_go_by_these_services(tmp_path: Path, url: str) -> None:
    assert channels_of(settings(tmp_path, to(tmp_path, one=url))) == {"one": url}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        *((url, "another scheme") for url in ("https://s3cret.org", " jsons://s3cret.org", "file:///s3cret", "s3cret")),
        *((url, "another scheme") for url in ("syslog://s3cret", "dbus://", "macosx://", "JSONS://s3cret.org")),
        *(
            (f"jsons://s3cret.org/x{more}", "other parameters")
            for more in (
                "?verify=no",
                "?redirect=yes",
                "?to=a;verify=no",
                "?a?verify=no",
                "?%76erify=no",
                "?:x=y",
                "?-x=y",
            )
        ),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?template=/etc/s3cret", "other parameters"),
        ("mailtos://b.org/a@b.org?from=v@b.org&pgppub=/etc/s3cret", "other parameters"),
        *((url, "without TLS to another machine") for url in ("json://s3cret.org", "json://localhost.s3cret.org")),
        ("mailto://localhost/a@b.org?from=v@b.org&smtp=s3cret.org", "without TLS to another machine"),
        ("mailto://u:s3cret@gmail.com", "without TLS to another machine"),
        ("mailtos://u:s3cret@b.org?mode=insecure", "without TLS to another machine"),
        *((url, "malformed") for url in ("mailtos://s3cret.org", "jsons://", "mailtos://u:s3cret@b.org?mode=none")),
    ],
)
def test_another_url_is_refused_and_never_shown(
    tmp_path: Path, url: str, problem: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidInputError, match=f"channels.toml: one: .*{problem}") as caught:
        channels_of(settings(tmp_path, to(tmp_path, one=url)))
    assert "s3cret" not in f"{caught.value}{caught.value.remedy}{caplog.text}{capfd.readouterr()}"


@pytest.mark.parametrize(
    "text", ["", "one = 5", "'mailtos://u:s3cret@b.org' = ''", "[one]\nurl = 's3cret'", "one = 's3cret"]
)
def test_a_malformed_file_of_channels_is_refused(tmp_path: Path, text: str) -> None:
    wanted = settings(tmp_path, to(tmp_path))
    wanted.channels.write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        channels_of(wanted)
    assert "s3cret" not in f"{caught.value}{caught.value.remedy}"


def test_a_file_of_channels_that_others_may_read_is_refused(tmp_path: Path) -> None:
    wanted = settings(tmp_path, to(tmp_path, one="jsons://a.org"))
    wanted.channels.chmod(0o640)
    with pytest.raises(InvalidInputError, match="others than the owner"):
        channels_of(wanted)


def told(store: CuratorStore, wanted: NotifySettings, now: float = 0) -> list[tuple[str, str]]:
    moment = int(now or time.time())
    return [(one.kind.value, one.subject) for one in source(store, wanted).events(moment, 1_000)]


def test_people_are_told_what_waits_and_what_was_refused(store: CuratorStore, tmp_path: Path) -> None:
    wanted = settings(tmp_path, WANTED)
    assert told(store, wanted) == []
    hold(store)
    assert told(store, wanted) == [("held", ID)]
    assert told(store, wanted, now=2_000_000_001) == [
        ("certificate", f"{n:x}") for n in serials()
    ]  # after the deadline
    store.releases.add(request_with(release_id=OTHER), 1)
    store.releases.set_state(OTHER, ReleaseState.DENIED, "why")
    assert told(store, wanted) == [("held", ID), ("refused", OTHER)]
    store.connection.execute("UPDATE release SET since = 999 WHERE id = ?", [OTHER])  # before notices were wanted
    assert told(store, wanted) == [("held", ID)]
    assert told(store, settings(tmp_path, WANTED + 'events = ["budget"]')) == []


def serials() -> list[int]:
    own = IDENTITY.certificate_facts.serial
    return [own, AUTHORITY.certificate.serial_number]


@pytest.mark.parametrize(("days", "number"), [(59, 0), (61, 1), (971, 2)])
def test_people_are_told_that_a_certificate_ends(store: CuratorStore, tmp_path: Path, days: int, number: int) -> None:
    found = told(store, settings(tmp_path, WANTED), now=NOW.timestamp() + days * DAY)
    assert found == [("certificate", f"{serial:x}") for serial in serials()[:number]]


def test_people_are_told_once_that_the_budget_is_nearly_spent(store: CuratorStore, tmp_path: Path) -> None:
    ledger = Ledger(store.connection, Decimal(1))
    reserve(ledger, spec_with(epsilon=Decimal("0.1")))
    ledger.charge(ID)
    assert told(store, settings(tmp_path, WANTED + "budget = 0.11")) == []
    assert told(store, settings(tmp_path, WANTED + "budget = 0.10")) == [("budget", "0.1 of 1")]


def test_a_notice_has_no_purpose_and_no_figures(store: CuratorStore, tmp_path: Path) -> None:
    hold(store)
    (event,) = source(store, settings(tmp_path, WANTED)).events(int(time.time()), 0)
    assert event.facts == {
        "event": "held",
        "study": "survey",
        "curator": "alice",
        "release": ID,
        "researcher": "rosa",
        "text": "a request waits for a person",
        "look": "veiltab curator requests study.toml --state STATE",
    }


def test_an_event_makes_one_notice_also_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        store = CuratorStore(tmp_path / "curator.sqlite")
        outbox = Outbox(store.connection)
        assert outbox.enabled_since(int(time.time())) <= outbox.enabled_since(2_000_000_000) < 2_000_000_000
        outbox.add(NOTICE, ["webhook", "email"], 100)
        outbox.add(AGAIN, ["webhook"], 100)
        assert [one.notice.kind for one in outbox.due("webhook", 100)] == [Kind.HELD, Kind.REFUSED]
        assert not outbox.due("webhook", 99)
        store.close()


def test_a_notice_is_due_until_it_is_sent(store: CuratorStore) -> None:
    outbox = Outbox(store.connection)
    outbox.add(NOTICE, ["webhook", "email"], 100)
    (first,) = outbox.due("webhook", 100)
    outbox.set_failed(first, "it answers 500", 100)
    assert not outbox.due("webhook", 129)
    (again,) = outbox.due("webhook", 130)
    assert (again.attempts, again.problem, again.notice.facts) == (1, "it answers 500", FACTS)
    outbox.set_sent(again, 131)
    assert not outbox.due("webhook", 10**9)
    assert len(outbox.due("email", 100)) == 1
    assert [(one.channel, one.sent, one.problem) for one in outbox.latest(5)] == [
        ("webhook", 131, ""),
        ("email", None, ""),
    ]


def test_the_waits_grow_and_end_after_a_week() -> None:
    waits = [(next_attempt(attempts, 0, 0) or 0) for attempts in range(7)]
    assert waits == [30, 120, 600, 3600, 21_600, 21_600, 21_600]
    assert next_attempt(9, 0, 7 * DAY - 21_600) == 7 * DAY
    assert next_attempt(9, 0, 7 * DAY - 21_599) is None
