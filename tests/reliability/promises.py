"""What a release of a deployment of processes must keep, whatever happens to its parties meanwhile."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from tests.protocol.world import CLOUD, World
from tests.server.publishing import published_by
from veiltab.common.errors import UnavailableError, VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.server.records.store import ServerStore

CURATORS = ("alice", "bob")


class LostReleaseError(Exception):
    """A release that was acknowledged is not there, or is not ready in time."""


def ready(  # noqa: PLR0913 - what is asked for
    world: World,
    names: Sequence[str],
    *,
    epsilon: str,
    within: float,
    researcher: str = "rosa",
    sample: int | None = None,
) -> str:
    """Ask for a release until it is ready; return its id.

    Args:
        world: its parties, which may be away for a while.
        names: attributes.
        epsilon: what to ask for.
        within: seconds until it counts as lost.
        researcher: who asks.
        sample: rows to sample; the planner's choice if not given.

    Raises:
        LostReleaseError: it is not ready in time, it ended without a result, or its label stands for another one.
    """
    label, acknowledged = world.label(), ""
    end = time.monotonic() + within
    while True:
        try:
            with world.client(researcher, timeout=5) as client:
                release = client.request(names, epsilon=epsilon, label=label, sample=sample)
                if acknowledged not in ("", release.id):
                    raise LostReleaseError(f"{acknowledged}: its label stands for {release.id}")
                acknowledged = release.id
                release.wait(min(10.0, within))
                return acknowledged
        except UnavailableError as error:
            if time.monotonic() > end:
                raise LostReleaseError(f"{acknowledged or label}: not ready after {within:g} s: {error}") from error
            time.sleep(0.1)
        except VeiltabError as error:
            raise LostReleaseError(f"{acknowledged or label}: {error}") from error


@dataclass(kw_only=True)
class Books:
    """What the parties recorded of a deployment's releases.

    Args:
        world: its parties.
        database: URL of the server's PostgreSQL; empty for SQLite.
    """

    world: World
    database: str = ""
    _published: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def note(self, release_id: str) -> None:
        """Keep what is published of a release that is ready."""
        with closing(self._server()) as server:
            self._published[release_id] = _files(server, release_id)

    def uncharged(self) -> tuple[str, ...]:
        """Return the releases that are ready and that a curator has not charged."""
        charged = [self.world.charges(curator) for curator in CURATORS]
        return tuple(one for one in self._published if not all(one in charges for charges in charged))

    def double(self) -> tuple[str, ...]:
        """Return the releases of which anything was done twice.

        A curator charged one twice, encrypted a column under two keys or anything else than what the server took, or
        the publication is another one than it was.
        """
        charges = [self.world.charges(curator) for curator in CURATORS]
        with closing(self._server()) as server:
            return tuple(
                one
                for one, published in self._published.items()
                if any(charged.count(one) > 1 for charged in charges)
                or self._made(one) != _taken(server, one)
                or _files(server, one) != published
            )

    def ledgers_differ(self) -> bool:
        """Whether the curators charged different releases, or different amounts."""
        alice, bob = (sorted(self.world.charges(curator)) for curator in CURATORS)
        return alice != bob or self.world.spent("alice") != self.world.spent("bob")

    def _server(self) -> ServerStore:
        return ServerStore(self.world.local.state_folder(*CLOUD), self.database)

    def _made(self, release_id: str) -> dict[str, bytes]:
        """Return the digest of what was encrypted of each column."""
        made = []
        for curator in CURATORS:
            with self.world.store(curator) as store:
                rows = store.connection.execute("SELECT attribute, digest FROM pad WHERE release_id = ?", [release_id])
                made += [(row["attribute"], bytes(row["digest"])) for row in rows.fetchall()]
        return dict(made) if len({name for name, _ in made}) == len(made) else {}


def _taken(server: ServerStore, release_id: str) -> dict[str, bytes]:
    """Return the digest of what the server took of each column."""
    rows = server.connection.execute("SELECT attribute, digest FROM complete_column WHERE release_id = ?", [release_id])
    return {row["attribute"]: bytes(row["digest"]) for row in rows.fetchall()}


def _files(server: ServerStore, release_id: str) -> dict[str, bytes]:
    """Return the published columns of a release."""
    if server.session(release_id).state is not ReleaseState.READY:
        return {}
    return published_by(server, release_id)
