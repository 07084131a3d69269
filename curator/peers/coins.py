"""The coins that the curators toss together: when a toss may happen, its questions and its answers.

common/core/coin has the mathematics. Both halves of a toss give the same answers when repeated, so a toss survives a
crash at either end. A release's coin has no share before the release is charged here: a seed costs its epsilon first. A
coin whose value was erased is never tossed again.

The share of a release's coin and the commitment to it are recorded with the charge, and the others hear of that and of
the commitment at once. Of whom a curator has not heard so, it asks for the commitment.

A curator asks for the others' shares once it holds every commitment. So a curator that has this one's share and never
opens its own had all that a toss needs, and has perhaps seen the coin: it withholds. One that is merely away never
asked.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from veiltab.common.core.coin import SHARE_LENGTH, commitment, toss, transcript, verify_share
from veiltab.common.core.derivation import derive
from veiltab.common.core.pads import ZeroShare
from veiltab.common.errors import ConflictError, InvalidInputError, NotReadyError, UnavailableError
from veiltab.common.release.table_spec import ALIGNMENT_ID, TableSpec
from veiltab.common.storage.database import transaction
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
from veiltab.curator.progress.release_record import Review
from veiltab.curator.records.store import CuratorStore

_ALIGNMENT, _RELEASE = "alignment", "release"
_COMMITMENT_BYTES = 32

NO_COMMITMENTS: Mapping[str, bytes] = MappingProxyType({})
"""No commitment of another curator."""


def alignment_coin(alignment_id: str) -> str:
    """Return the id of the coin that the keys of an alignment are derived from."""
    return f"{_ALIGNMENT}/{alignment_id}"


def release_coin(release_id: str) -> str:
    """Return the id of the coin that the sample of a release is drawn from."""
    return f"{_RELEASE}/{release_id}"


def pair_coin(release_id: str, one: str, other: str) -> str:
    """Return the id of the coin of a release that two curators alone toss: their shares of zero follow from it."""
    return "/".join((release_coin(release_id), *sorted((one, other))))


class Coins:
    """The coins of one curator.

    Args:
        curators: names of all curators of the study; each of them has a share of every coin but those of two.
        store: keeps shares, commitments and values.
        ledger: says whether a release is charged.
    """

    def __init__(self, name: str, curators: Iterable[str], store: CuratorStore, ledger: Ledger) -> None:
        self._name = name
        self._curators = frozenset(curators)
        self._store = store
        self._ledger = ledger

    def commit(self, release_id: str) -> None:
        """Draw this curator's share of a release's coin and commit to it, in the transaction of the charge."""
        coin_id = release_coin(release_id)
        self._commit(coin_id, self._store.coins.own_share(coin_id, secrets.token_bytes(SHARE_LENGTH)))

    def commitment(self, release_id: str) -> bytes:
        """Return this curator's commitment to its share of a release's coin; empty before there is one."""
        return self._store.coins.commitments(release_coin(release_id)).get(self._name, b"")

    async def toss(self, coin_id: str, peers: Peers, received: Mapping[str, bytes] = NO_COMMITMENTS) -> bytes:
        """Toss a coin with all others that have a share of it, or return its value if it was tossed.

        Args:
            received: commitments of other curators that they have shown; the rest of them are asked for theirs.

        Raises:
            NotReadyError: its release is not charged, here or at another curator.
            IntegrityError: a share was opened that was not committed to.
            ConflictError: a curator committed to two things, or the coin is forgotten.
        """
        value = self._store.coins.coin_value(coin_id)
        if value is not None:
            return value
        # A share that was committed to before is durable, and leaves with a durable record of all commitments alone.
        is_new = self._name not in self._store.coins.commitments(coin_id)
        with transaction(self._store.connection, is_synced=is_new):
            own = self.share(coin_id)
            mine = self._commit(coin_id, own)
            for name, committed in received.items():
                self._take(coin_id, name, committed)
        others = [name for name in peers.curators if name in self._tossers(coin_id)]
        for name in others:
            if name not in received:
                self._take(coin_id, name, await peers.commitment(name, coin_id, mine))
        commitments = self._store.coins.commitments(coin_id)
        shares = {self._name: own}
        refusal: NotReadyError | UnavailableError | None = None
        for name in others:  # all of them, so that none passes for one that withholds
            try:
                share = await peers.opening(name, coin_id, transcript(commitments), mine)
            except ConflictError as error:
                # Which of the others committed to two things cannot be told here.
                raise ConflictError(error.problem, where=", ".join(map("curator {}".format, others))) from None
            except (NotReadyError, UnavailableError) as error:
                refusal = refusal or error
                continue
            verify_share(coin_id, name, share, commitments[name])
            self._store.coins.set_opening_received(coin_id, name)
            shares[name] = share
        if refusal is not None:
            raise refusal
        value = toss(coin_id, shares)
        self._store.coins.set_coin_value(coin_id, value)
        return value

    async def shares_of_zero(self, spec: TableSpec, peers: Peers) -> dict[str, ZeroShare]:
        """Return attribute -> this curator's share of zero in each of its columns: the same ones every time.

        Each two holders of a column toss a coin that no other party knows.

        Raises:
            VeiltabError: as `toss`.
        """
        own = spec.columns_of(self._name)
        others = sorted({holder for column in own for holder in column.holders} - {self._name})
        coins = {name: await self.toss(pair_coin(spec.release_id, self._name, name), peers) for name in others}
        shares = {}
        for column in own:
            place, label = column.holders.index(self._name), f"share of zero {column.attribute}"
            keys = tuple(derive(coins[holder], label) for holder in column.holders if holder != self._name)
            shares[column.attribute] = ZeroShare(minus=keys[:place], plus=keys[place:])
        return shares

    def awaited(self, coin_id: str) -> frozenset[str]:
        """Return the curators whose part of a coin is missing here: a commitment or, once all are there, a share."""
        if self._store.coins.coin_value(coin_id) is not None:
            return frozenset()
        others = self._tossers(coin_id) - {self._name}
        uncommitted = others - set(self._store.coins.commitments(coin_id))
        return uncommitted or others - self._store.coins.openings_received(coin_id)

    def withheld(self, coin_id: str) -> frozenset[str]:
        """Return the curators that have this one's share of a coin, and never opened theirs here."""
        return self._store.coins.openings_withheld(coin_id)

    def with_debts(self, own: Review, release_id: str) -> Review:
        """Return a review with the parties that owe their part of the coin of a release of one table."""
        coin_id = release_coin(release_id)
        if not self._store.coins.knows_coin(coin_id):
            return own
        withheld, owing = (
            frozenset(f"curator {name}" for name in names) for names in (self.withheld(coin_id), self.awaited(coin_id))
        )
        return replace(own, withheld=withheld, owing=owing)

    def exchange_commitments(self, coin_id: str, peer: str, committed: bytes) -> bytes:
        """Record a peer's commitment to its share, and return one's own.

        Raises:
            NotReadyError, ConflictError, InvalidInputError: as `share`.
            NotReadyError: this curator has not begun the alignment.
            ConflictError: the peer committed to something else before.
        """
        with transaction(self._store.connection):
            own = self._share_for_peer(coin_id, peer)
            self._take(coin_id, peer, committed)
            return self._commit(coin_id, own)

    def open_share(self, coin_id: str, peer: str, claim: bytes, commitment: bytes = b"") -> bytes:
        """Return one's own share to a peer that holds the same commitments of all curators, and record that.

        Args:
            claim: the peer's transcript of the commitments.
            commitment: the peer's own commitment, recorded with that; empty if it was recorded before.

        Raises:
            NotReadyError, ConflictError, InvalidInputError: as `share`.
            NotReadyError: not every curator has committed here, or this one has not begun the alignment.
            ConflictError: the peer holds other commitments, or committed to something else before.
        """
        with transaction(self._store.connection):
            own = self._share_for_peer(coin_id, peer)
            if commitment:
                self._take(coin_id, peer, commitment)
            commitments = self._store.coins.commitments(coin_id)
            if set(commitments) != self._tossers(coin_id):
                raise NotReadyError("does not hold every commitment yet", where=f"curator {self._name}")
            if transcript(commitments) != claim:
                raise ConflictError("the curators hold different commitments", where="coin toss")
            self._store.coins.set_opening_given(coin_id, peer)
        return own

    def share(self, coin_id: str) -> bytes:
        """Return this curator's share of a coin that may be tossed now, the same one every time.

        Raises:
            NotReadyError: the coin's release is not charged here.
            ConflictError: the coin was tossed and is forgotten.
            InvalidInputError: there is no such coin.
        """
        kind, _, names = coin_id.partition("/")
        name, *pair = names.split("/")
        is_of_two = len(pair) == 2 and self._name in pair and coin_id == pair_coin(name, *pair)
        if kind == _RELEASE and (is_of_two or not pair):
            if not self._ledger.chain.is_charged(name):
                raise NotReadyError("has not charged the release yet", where=f"curator {self._name}")
        elif kind != _ALIGNMENT or not ALIGNMENT_ID.fullmatch(name) or pair:
            raise InvalidInputError("there is no such coin", where="coin toss")
        share = self._store.coins.own_share(coin_id, secrets.token_bytes(SHARE_LENGTH))
        if not share:
            raise ConflictError("this coin was tossed and is forgotten", where="coin toss")
        return share

    def _tossers(self, coin_id: str) -> frozenset[str]:
        """Return the curators that have a share of a coin."""
        kind, *names = coin_id.split("/")
        return frozenset(names[1:] if kind == _RELEASE else ()) or self._curators

    def _share_for_peer(self, coin_id: str, peer: str) -> bytes:
        """Return `share` to a peer, who could else name any number of alignments for which one would be kept."""
        if peer not in self._tossers(coin_id):
            raise InvalidInputError("there is no such coin of this curator's", where=f"curator {peer}")
        if coin_id.startswith(f"{_ALIGNMENT}/") and not self._store.coins.knows_coin(coin_id):
            raise NotReadyError("has not begun this alignment yet", where=f"curator {self._name}")
        return self.share(coin_id)

    def _take(self, coin_id: str, peer: str, committed: bytes) -> None:
        """Record a peer's commitment.

        Raises:
            InvalidInputError: it is none.
            ConflictError: the peer committed to something else before.
        """
        if len(committed) != _COMMITMENT_BYTES:
            raise InvalidInputError(f"the commitment does not have {_COMMITMENT_BYTES} bytes", where=f"curator {peer}")
        self._store.coins.commit(coin_id, peer, committed)

    def _commit(self, coin_id: str, own: bytes) -> bytes:
        mine = commitment(coin_id, self._name, own)
        self._store.coins.commit(coin_id, self._name, mine)
        return mine
