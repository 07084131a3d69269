"""Checkpoints that curators sign of their ledgers at each charge, and that all others keep, cosigned.

Who rewrites a ledger, every digest of it, cannot take back what the others hold: `veiltab verify --beside` compares.
"""

from collections.abc import Iterable, Iterator

from veiltab.common.core.texts.canonical import canonical_json, canonical_text, read_canonical
from veiltab.common.errors import IntegrityError, VeiltabError
from veiltab.common.release.messages.witness import longest_ledger, remember_ledger
from veiltab.common.rpc.certificates.checkpoint import check_checkpoint, cosigned_note, signed_checkpoint
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Identity, Party, Role, utc_now
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.storage.database import Database, transaction, value_of
from veiltab.curator.progress.release_record import Progress

_ADD = "INSERT INTO checkpoint VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


def sign_charge(connection: Database, identity: Identity, release_id: str, ledger: tuple[int, bytes]) -> None:
    """Record this curator's own checkpoint of a release that it charges, in the transaction of the charge."""
    head = LedgerHead(length=ledger[0], digest=ledger[1].hex())
    checkpoint = signed_checkpoint(identity, head, release_id, utc_now())
    connection.execute(_ADD, [identity.party.name, release_id, canonical_text(checkpoint)])


def own_checkpoint(connection: Database, curator: str, release_id: str) -> bytes:
    """Return this curator's own checkpoint of a release; empty before the charge, and of one of several tables."""
    query = "SELECT line FROM checkpoint WHERE curator = ? AND release_id = ?"
    return (value_of(connection, query, curator, release_id) or "").encode()


def keep_checkpoints(connection: Database, identity: Identity, release_id: str, others: Iterable[Progress]) -> None:
    """Check, cosign and keep the checkpoint of each other curator of a release that all have charged.

    Raises:
        IntegrityError: one shows none, one that it did not sign or of another release, another ledger of a length that
            it showed before or the same for another release, or no more than it had shown before this one was reserved.
    """
    now = utc_now()
    for peer in others:
        where = f"curator {peer.curator}"
        text = _read(peer.checkpoint, where)
        party = Party(study=identity.party.study, role=Role.CURATOR, name=peer.curator)
        checkpoint = check_checkpoint(text, party, identity.authority, now)
        head = checkpoint.head
        if checkpoint.release != release_id:
            raise IntegrityError("shows the checkpoint of another release", where=where)
        query = "SELECT length FROM seen_before WHERE release_id = ? AND curator = ?"
        before = value_of(connection, query, release_id, peer.curator)
        if before is not None and head.length <= before:
            raise IntegrityError("shows a ledger that it had before this release", where=where)
        current = head.length, bytes.fromhex(head.digest)
        longest = longest_ledger(connection, peer.curator)
        # Each that was kept is remembered, so none was longer than the longest.
        is_another = head.length <= longest[0] and _has_another(connection, peer.curator, text.text, head)
        if is_another or (longest[0] == current[0] and longest != current):
            raise IntegrityError("shows another ledger than before", where=where)
        note, cosigner = cosigned_note(text, identity, now)
        plain = {"release": release_id, "note": note, "certificate": text.certificate, "cosigner": cosigner}
        with transaction(connection):
            connection.execute(_ADD, [peer.curator, release_id, canonical_json(plain)])
            remember_ledger(connection, peer.curator, current)


def note_seen(connection: Database, release_id: str) -> None:
    """Record how long a ledger each other curator has shown, before a release is reserved: its entry comes after."""
    connection.execute("INSERT OR IGNORE INTO seen_before SELECT ?, curator, length FROM witness", [release_id])


def witnessed_lines(connection: Database, curator: str) -> Iterator[str]:
    """Return what this curator has witnessed of the others' ledgers, a line for each checkpoint, oldest first."""
    rows = connection.execute("SELECT line FROM checkpoint WHERE curator <> ? ORDER BY rowid", [curator])
    return (row["line"] for row in rows)


def _has_another(connection: Database, curator: str, text: str, head: LedgerHead) -> bool:
    """Whether a curator's checkpoint of the same length, but another one, is kept: the longest may be longer."""
    beginning, whole = (canonical_json(one)[1:-1] for one in (f"/ledger\n{head.length}\n", f"{text}\n"))
    sql = "SELECT 1 FROM checkpoint WHERE curator = ? AND instr(line, ?) > 0 AND instr(line, ?) = 0 LIMIT 1"
    return value_of(connection, sql, curator, beginning, whole) is not None


def _read(checkpoint: bytes, where: str) -> SignedText:
    try:
        return read_canonical(SignedText, checkpoint.decode())
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, VeiltabError):
        raise IntegrityError("shows no checkpoint of its ledger", where=where) from None
