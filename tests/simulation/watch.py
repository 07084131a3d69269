"""What must never happen, looked for all through a run."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import numpy as np

from tests.researcher.made_release import decrypted_canaries
from tests.server.publishing import published_by
from tests.simulation.parties import SERVER, PartyHost, Village, follows
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Role
from veiltab.curator.progress.progress import APPROVED
from veiltab.researcher.receiving.decryption import EncryptedColumn, PublishedRows
from veiltab.server.records.store import ServerStore
from veiltab.v1 import curator_pb2, curator_peer_pb2, ingest_pb2, server_release_pb2

Arguments = ParamSpec("Arguments")

_FINISHED = {state.value for state in ReleaseState if state.finished}
_UNSUCCESSFUL = {state.value for state in ReleaseState if state.unsuccessful}


def noted(see: Callable[Concatenate["Watch", Arguments], None]) -> Callable[Concatenate["Watch", Arguments], None]:
    """Keep what a look within a party finds: the party takes it for an error of its own, and goes on."""

    @wraps(see)
    def seen(watch: "Watch", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            see(watch, *args, **kwargs)
        except AssertionError as error:
            watch.broken = watch.broken or error
            raise

    return seen


@dataclass(kw_only=True)
class Watch:
    """Keeps what was seen of a study, and raises AssertionError at what must never happen.

    Args:
        village: the study.
        hosts: all parties.
        hostile: a party that may lie, whose own state is not judged; or empty.
        restored: whether the server's disk may be an old copy, on which a release may stand where it stood before.
    """

    village: Village
    hosts: dict[str, PartyHost]
    hostile: str = ""
    restored: bool = False
    charges: dict[str, list[str]] = field(default_factory=dict)
    ends: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    published: dict[str, dict[str, bytes]] = field(default_factory=dict)
    keys: dict[bytes, tuple[str, str, str]] = field(default_factory=dict)
    ciphertexts: dict[tuple[str, str], bytes] = field(default_factory=dict)
    plain: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    rows: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    canaries: dict[str, np.ndarray] = field(default_factory=dict)
    broken: AssertionError | None = None

    @property
    def curators(self) -> list[PartyHost]:
        return [host for host in self.hosts.values() if host.party.role is Role.CURATOR]

    def look(self) -> None:
        """Look at the durable state of every party, and at what was seen within one."""
        if self.broken is not None:
            raise self.broken
        charged = {}
        for host in self.curators:
            with self._database(host, "curator.sqlite") as db:
                if db is not None:
                    self._look_at_curator(host.name, db)
            charged[host.name] = set(self.charges.get(host.name, ()))
        server = next(host for host in self.hosts.values() if host.party.role is Role.SERVER)
        with self._database(server, "server.sqlite") as db:
            if db is not None:
                self._look_at_server(server, db)
        for host in self.hosts.values():
            if host.party.role is Role.RESEARCHER:
                with self._database(host, "researcher.sqlite") as db:
                    if db is not None:
                        self._look_at_ends(host.name, db.execute("SELECT id, state, failure FROM release"))

    def _database(self, host: PartyHost, name: str) -> Any:  # noqa: ANN401 - a context manager
        path = host.disk / name
        return closing(_open(path)) if path.exists() else _Nothing()

    def _look_at_curator(self, name: str, db: sqlite3.Connection) -> None:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'ledger'").fetchone():
            return  # it was killed before it made its tables
        rows = db.execute("SELECT release_id, epsilon FROM ledger ORDER BY number").fetchall()
        now, before = [row[0] for row in rows], self.charges.get(name, [])
        assert now[: len(before)] == before, f"{name}'s ledger lost or changed entries"
        assert len(set(now)) == len(now), f"{name} charged a release twice"
        spent = sum((Decimal(row[1]) for row in rows), Decimal(0))
        assert spent <= self.village.study.budget_epsilon, f"{name} spent {spent}"
        self.charges[name] = now
        self._look_at_ends(name, db.execute("SELECT id, state, failure FROM release"))
        for (coin,) in db.execute("SELECT id FROM coin WHERE length(value) > 0 AND id LIKE 'release/%'").fetchall():
            self._all_charged(coin.removeprefix("release/"), f"{name} has a seed")
        for release, attribute, key, digest in db.execute("SELECT release_id, attribute, key, digest FROM pad"):
            if key:
                owner = self.keys.setdefault(bytes(key), (name, release, attribute))
                assert owner == (name, release, attribute), f"{name} uses a pad twice: {owner}"
            if digest:
                known = self.ciphertexts.setdefault((release, attribute), bytes(digest))
                assert known == bytes(digest), f"{name} made two ciphertexts for {attribute} of {release}"

    def _look_at_ends(self, name: str, rows: Any) -> None:  # noqa: ANN401 - a cursor
        for release, state, failure in rows.fetchall():
            end = (state, failure)
            known = None if self.restored and name == SERVER else self.ends.get((name, release))
            assert known in {None, end}, f"{name} moved {release} from {known} to {end}"
            if state in _FINISHED:
                self.ends[name, release] = end
            if state in _UNSUCCESSFUL:
                assert failure, f"{release} is {state} at {name} without a reason"

    def _look_at_server(self, host: PartyHost, db: sqlite3.Connection) -> None:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'complete_column'").fetchone():
            return
        self._look_at_ends(host.name, db.execute("SELECT id, state, failure FROM session"))
        for release, attribute, digest in db.execute("SELECT release_id, attribute, digest FROM complete_column"):
            if not self.hostile:
                made = self.ciphertexts.get((release, attribute))
                assert made == bytes(digest), f"the server took another ciphertext for {attribute} of {release}"
        for (release,) in db.execute("SELECT id FROM session WHERE state = 'ready'").fetchall():
            now = {name: sha256(data).digest() for name, data in self._published_by(host.name, release).items()}
            assert self.published.setdefault(release, now) == now, f"{release} was published twice"

    def _all_charged(self, release: str, what: str) -> None:
        for host in self.curators:
            if host.name != self.hostile:
                if release in self.charges.get(host.name, []):
                    continue
                with self._database(host, "curator.sqlite") as db:
                    row = db and db.execute("SELECT 1 FROM ledger WHERE release_id = ?", [release]).fetchone()
                assert row, f"{what} of {release} before {host.name} charged it"

    # Calls

    @noted
    def see_call(  # noqa: C901 - a case for each RPC
        self, method: str, caller: str, peer: str, requests: Sequence[bytes], answers: Sequence[bytes]
    ) -> None:
        """Look at a call that was answered without a refusal."""
        if self.hostile in {caller, peer}:
            return
        match method.rpartition("/")[2]:
            case "Reveal":
                coin = curator_peer_pb2.RevealRequest.FromString(requests[0]).coin_id
                if coin.startswith("release/"):
                    self._all_charged(coin.removeprefix("release/"), f"{peer} opened its share")
            case "FetchPad":
                asked = curator_pb2.FetchPadRequest.FromString(requests[0])
                self._key_may_leave(peer, caller, asked.release_id, asked.attribute)
            case "GetKeys":
                wanted = curator_pb2.GetKeysRequest.FromString(requests[0])
                for attribute in curator_pb2.GetKeysResponse.FromString(answers[0]).keys:
                    self._key_may_leave(peer, caller, wanted.release_id, attribute)
            case "UploadColumns":
                spec = ingest_pb2.UploadColumnsRequest.FromString(requests[0]).spec
                self._all_charged(spec.release_id, f"{caller} sent columns")
            case "UploadColumn":
                header = ingest_pb2.UploadColumnRequest.FromString(requests[0]).header
                self._all_charged(header.release_id, f"{caller} sent a column")
            case "FetchColumn":
                self._is_published(peer, requests[0], answers)
            case "GetRelease":
                asked_of = server_release_pb2.GetReleaseRequest.FromString(requests[0]).release_id
                columns = dict(server_release_pb2.GetReleaseResponse.FromString(answers[0]).columns)
                if columns:
                    now = self._published_by(peer, asked_of)
                    assert columns.items() <= now.items(), "the server sent what is not published"
            case _:
                pass

    def _key_may_leave(self, curator: str, researcher: str, release: str, attribute: str) -> None:
        with self._database(self.hosts[curator], "curator.sqlite") as db:
            row = db.execute("SELECT researcher, state FROM release WHERE id = ?", [release]).fetchone()
            verdict = db.execute(
                "SELECT verdict FROM decision WHERE release_id = ? AND attribute = ?", [release, attribute]
            ).fetchone()
        assert tuple(row) == (researcher, "ready"), f"{curator} gave a key of {release} to {researcher}: {tuple(row)}"
        assert tuple(verdict) == (APPROVED,), f"{curator} gave the key of {attribute}, which it did not grant"

    def _is_published(self, server: str, request: bytes, answers: Sequence[bytes]) -> None:
        asked = server_release_pb2.FetchColumnRequest.FromString(request)
        parts = [server_release_pb2.FetchColumnResponse.FromString(answer).chunk.data for answer in answers]
        column = self._published_by(server, asked.release_id)[asked.attribute]
        assert column[asked.offset :] == b"".join(parts), "the server sent what is not published"

    def _published_by(self, server: str, release: str) -> dict[str, bytes]:
        with closing(ServerStore(self.hosts[server].disk)) as store:
            return published_by(store, release)

    # What is encrypted

    @noted
    def see_plain(self, release: str, attribute: str, column: np.ndarray) -> None:
        """Look at the sampled rows of a column, whenever they are about to be encrypted."""
        known = self.plain.setdefault((release, attribute), column.copy())
        assert np.array_equal(known, column), f"{attribute} of {release} was sampled twice"
        codes = self.plain.get((release, "code"))
        twins = self.plain.get((release, "twin"))
        marks = self.plain.get((release, "mark"))
        if codes is not None:
            for name, one in (("twin", twins), ("mark", marks)):
                assert one is None or np.array_equal(follows(codes)[name], one), f"rows of {release} are not joined"
        elif twins is not None and marks is not None:
            code = (twins.astype(np.int64) - 1) * 3 % 5
            assert np.array_equal(code % 4, marks), f"rows of {release} are not joined"

    # What is decrypted

    @noted
    def see_rows(self, release: str, columns: Sequence[EncryptedColumn], rows: PublishedRows) -> None:
        """Look at the rows that a desk has counted; they leave the product if all are said to be canaries."""
        places = rows.canaries.all()
        assert np.array_equal(self.canaries.setdefault(release, places), places)
        everyone = CanaryPlaces.of(bytes(32), rows=rows.uploaded, canaries=rows.uploaded)
        every = decrypted_canaries(columns, replace(rows, canaries=everyone))
        for one, symbols in zip(columns, every, strict=True):
            known = self.rows.setdefault((release, one.column.attribute), symbols)
            assert np.array_equal(known, symbols), "a release was decrypted to other rows before"

    # In the end

    def leftovers(self) -> Iterator[str]:
        """Yield what a settled study must not have on its disks."""
        for host in self.hosts.values():
            if host.name == self.hostile:
                continue
            for path in sorted(host.disk.rglob("*")):
                suffixes, names = {".tmp", ".ciphertext", ".canaries", ".rows"}, {"ciphertext"}
                if path.suffix in suffixes or path.name in names:
                    yield str(path.relative_to(host.disk.parent))


class _Nothing:
    """Stands for a database that is not there yet."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=0)
