"""What a curator keeps of the others' ledgers, and how it is compared with their evidence."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.curator.audit.exported_evidence import (  # noqa: F401 - fixtures
    NOW,
    PEM,
    Office,
    failures,
    identity,
    office_fixture,
    rewritten,
)
from tests.curator.made_records import shown
from tests.worlds.parties import ALICE, BOB
from veiltab.common.core.texts.canonical import canonical_json, canonical_text
from veiltab.common.errors import IntegrityError
from veiltab.common.release.messages.witness import longest_ledger
from veiltab.common.rpc.certificates.checkpoint import cosigned_note, signed_checkpoint
from veiltab.common.rpc.certificates.release_verification import Finding
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Party
from veiltab.curator.evidence.check import EvidenceFindings, check_beside, check_evidence
from veiltab.curator.evidence.ledger_comparison import View, compared, split_views
from veiltab.curator.peers.witnesses import keep_checkpoints, note_seen, own_checkpoint, sign_charge, witnessed_lines
from veiltab.curator.progress.release_record import Progress
from veiltab.curator.records.store import CuratorStore

ID, OTHER = "0" * 31 + "1", "1" * 32
HEADS = [f"{number:064x}" for number in range(9)]


SAYS = shown(charged=True, reserved=True)


def shows(length: int, digest: str, party: Party = BOB, *, release: str = OTHER) -> Progress:
    signed = signed_checkpoint(identity(party), LedgerHead(length=length, digest=digest), release, NOW)
    return replace(SAYS, checkpoint=canonical_text(signed).encode())


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def looked(
    seen: list[tuple[int, str, int]], entries: int, made_at: int = 1000, charged: Iterable[int] | None = None
) -> Finding:
    ledger = {number: HEADS[number] for number in range(1, entries + 1)}
    of_alice = [
        View(party=ALICE.uri, head=LedgerHead(length=n, digest=digest), at=at(when), release=f"{n:032x}")
        for n, digest, when in seen
    ]
    others = [View(party=BOB.uri, head=LedgerHead(length=1, digest="ff" * 32), at=at(1))]
    releases = {number: f"{number:032x}" for number in charged or (n for n, _, _ in seen)}
    return compared(ALICE.uri, made_at, ledger, releases, "bob", [*others, *of_alice])


def test_a_ledger_that_has_what_was_signed_fits() -> None:
    one = looked([(3, HEADS[3], 30), (1, HEADS[1], 10)], entries=4)
    assert one.holds
    assert one.detail == "2 ledgers that the curator signed, of up to 3 entries, are in it"


def test_a_ledger_of_other_entries_is_found_and_between_which() -> None:
    one = looked([(1, HEADS[1], 10), (4, "ff" * 32, 40), (5, HEADS[5], 50)], entries=6)
    assert one.holds is False
    assert "signed a ledger of 4 entries by 1970-01-01 00:00:40 UTC" in one.detail
    assert one.detail.endswith("of entries 2 to 4 one differs at least")


def test_a_ledger_that_was_cut_off_is_found_but_an_earlier_one_is_not_called_so() -> None:
    cut = looked([(2, HEADS[2], 20), (4, HEADS[4], 40)], entries=3)
    assert cut.holds is False
    assert "its evidence has 3 entries: the rest was cut off" in cut.detail
    earlier = looked([(2, HEADS[2], 20), (4, HEADS[4], 5000)], entries=3, made_at=1000)
    assert earlier.holds
    assert earlier.detail.endswith("of up to 2 entries, are in it; 1 of later ledgers are not compared")


def test_a_witness_that_lacks_checkpoints_of_releases_is_said_and_does_not_hold() -> None:
    one = looked([(1, HEADS[1], 10), (3, HEADS[3], 30)], entries=4, charged=(1, 2, 3))
    assert one.holds is None
    assert one.detail.endswith("of up to 3 entries, are in it; for 1 of 3 releases it has none")


def test_a_checkpoint_of_another_release_than_its_entry_is_found() -> None:
    ledger, head = {1: HEADS[1]}, LedgerHead(length=1, digest=HEADS[1])
    other = View(party=ALICE.uri, head=head, at=at(1), release=OTHER)
    assert compared(ALICE.uri, 1000, ledger, {1: OTHER}, "bob", [other]).holds
    assert compared(ALICE.uri, 1000, ledger, {1: ID}, "bob", [other]).holds is False


def test_two_ledgers_that_a_curator_signed_are_proof_whichever_files_hold_them() -> None:
    def signed(length: int, digest: str, release: str = "", party: Party = ALICE) -> View:
        return View(party=party.uri, head=LedgerHead(length=length, digest=digest), at=at(1), release=release)

    one, same, stated = signed(1, HEADS[1], ID), signed(2, HEADS[2], OTHER), signed(2, HEADS[2])
    assert not list(split_views([("bob", one), ("carol", one), ("bob", same), ("carol", stated)]))
    for other in (signed(1, HEADS[5], ID), signed(1, HEADS[5], "2" * 32), signed(3, HEADS[3], ID), signed(1, HEADS[5])):
        (line,) = split_views(
            [("bob", one), ("carol", signed(1, HEADS[5], ID, BOB)), ("carol", other), ("carol", other)]
        )
        assert line.what == f"ledgers of {ALICE.uri}"
        assert line.holds is False
        assert "as evidence of bob and of carol shows: this is proof against that curator" in line.detail


def test_nothing_to_compare_is_said_and_does_not_hold() -> None:
    assert looked([], entries=3).holds is None
    assert looked([(4, HEADS[4], 5000)], entries=3, made_at=1000).holds is None


def test_the_others_checkpoints_are_kept_cosigned_once_a_release(store: CuratorStore) -> None:
    for length, release in ((1, ID), (1, ID), (2, OTHER)):
        keep_checkpoints(store.connection, identity(ALICE), release, [shows(length, HEADS[length], release=release)])
    lines = [json.loads(line) for line in witnessed_lines(store.connection, "alice")]
    assert [line["release"] for line in lines] == [ID, OTHER]
    assert longest_ledger(store.connection, "bob") == (2, bytes.fromhex(HEADS[2]))


def test_another_ledger_of_a_length_that_is_not_the_longest_is_refused(store: CuratorStore) -> None:
    for length, release in ((1, ID), (2, OTHER)):
        keep_checkpoints(store.connection, identity(ALICE), release, [shows(length, HEADS[length], release=release)])
    third = "2" * 32
    for length, digest in ((1, HEADS[3]), (1, HEADS[1]), (2, HEADS[2])):
        with pytest.raises(IntegrityError, match="shows another ledger than before"):
            keep_checkpoints(store.connection, identity(ALICE), third, [shows(length, digest, release=third)])
    keep_checkpoints(store.connection, identity(ALICE), third, [shows(3, HEADS[3], release=third)])
    assert len(list(witnessed_lines(store.connection, "alice"))) == 3


def test_a_checkpoint_that_was_shown_before_is_refused_for_another_release(store: CuratorStore) -> None:
    keep_checkpoints(store.connection, identity(ALICE), ID, [first := shows(1, HEADS[1], release=ID)])
    with pytest.raises(IntegrityError, match="shows the checkpoint of another release"):
        keep_checkpoints(store.connection, identity(ALICE), OTHER, [first])


def test_a_ledger_that_is_no_longer_than_before_the_release_is_refused_and_one_beside_others_is_not(
    store: CuratorStore,
) -> None:
    keep_checkpoints(store.connection, identity(ALICE), ID, [shows(3, HEADS[3], release=ID)])
    for release in (OTHER, "2" * 32):
        note_seen(store.connection, release)
    note_seen(store.connection, OTHER)
    for length in (1, 2):
        with pytest.raises(IntegrityError, match="shows a ledger that it had before this release"):
            keep_checkpoints(store.connection, identity(ALICE), OTHER, [shows(length, HEADS[length])])
    keep_checkpoints(store.connection, identity(ALICE), "2" * 32, [shows(5, HEADS[5], release="2" * 32)])
    keep_checkpoints(store.connection, identity(ALICE), OTHER, [shows(4, HEADS[4])])


def unsigned(length: int) -> Progress:
    one = signed_checkpoint(identity(BOB), LedgerHead(length=length, digest=HEADS[2]), OTHER, NOW)
    return replace(SAYS, checkpoint=canonical_text(replace(one, signature="00")).encode())


@pytest.mark.parametrize(
    ("progress", "problem"),
    [
        (SAYS, "shows no checkpoint"),
        (replace(SAYS, checkpoint=b"\xff"), "shows no checkpoint"),
        (replace(SAYS, checkpoint=b"{}"), "shows no checkpoint"),
        (replace(SAYS, checkpoint=b"[" * 9999), "shows no checkpoint"),
        (unsigned(2), "does not fit"),
        (shows(2, HEADS[2], ALICE), "not that of curator bob"),
        (shows(1, HEADS[2]), "shows another ledger than before"),
    ],
)
def test_a_curator_without_a_right_checkpoint_is_refused(store: CuratorStore, progress: Progress, problem: str) -> None:
    keep_checkpoints(store.connection, identity(ALICE), ID, [shows(1, HEADS[1], release=ID)])
    with pytest.raises(IntegrityError, match=problem):
        keep_checkpoints(store.connection, identity(ALICE), OTHER, [progress])
    assert len(list(witnessed_lines(store.connection, "alice"))) == 1


def test_ones_own_checkpoint_is_signed_once_and_not_among_those_of_others(store: CuratorStore) -> None:
    assert own_checkpoint(store.connection, "alice", ID) == b""
    sign_charge(store.connection, identity(ALICE), ID, (1, bytes.fromhex(HEADS[1])))
    first = own_checkpoint(store.connection, "alice", ID)
    sign_charge(store.connection, identity(ALICE), ID, (1, bytes.fromhex(HEADS[1])))
    assert first
    assert own_checkpoint(store.connection, "alice", ID) == first
    assert list(witnessed_lines(store.connection, "alice")) == []


def witnessed(signer: Party, witness: Party) -> str:
    one = signed_checkpoint(identity(signer), LedgerHead(length=1, digest=HEADS[1]), ID, NOW)
    note, cosigner = cosigned_note(one, identity(witness), NOW)
    return canonical_json({"release": ID, "note": note, "certificate": one.certificate, "cosigner": cosigner})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (witnessed(BOB, BOB), "not a checkpoint of another that this curator cosigned"),
        (witnessed(ALICE, ALICE), "not a checkpoint of another that this curator cosigned"),
        (witnessed(BOB, ALICE).replace("ledger", "ledgers"), "not a checkpoint"),
        ("{}", "cannot be read"),
        ("[", "cannot be read"),
        (canonical_json({"note": 1, "certificate": 2, "cosigner": 3}), "cannot be read"),
    ],
)
def test_checkpoints_that_are_none_fail_their_line(office: Office, line: str, problem: str) -> None:
    def change(files: dict[str, bytes]) -> None:
        files["witnessed.jsonl"] = f"{line}\n".encode()

    failed = failures(rewritten(office, change, identity(ALICE)))
    assert list(failed) == ["checkpoints"]
    assert problem in failed["checkpoints"]


def test_evidence_with_a_checkpoint_of_another_says_so(office: Office) -> None:
    def change(files: dict[str, bytes]) -> None:
        files["witnessed.jsonl"] = f"{witnessed(BOB, ALICE)}\n".encode()

    found = check_evidence(rewritten(office, change, identity(ALICE)), PEM, None)
    assert found.holds
    assert (
        View(party=BOB.uri, head=LedgerHead(length=1, digest=HEADS[1]), at=at(int(NOW.timestamp())), release=ID)
        in found.views
    )


def test_evidence_that_does_not_hold_witnesses_nothing(office: Office) -> None:
    one = check_evidence(office.file, PEM, None)
    broken: EvidenceFindings = replace(one, findings=(Finding(what="files", detail="", holds=False),))
    (line,) = check_beside(one, broken)
    assert (line.holds, line.detail) == (False, "does not hold: files")
