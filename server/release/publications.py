"""What a server has published, as its researcher and the curators read it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from veiltab.common.errors import DeniedError, NotFoundError
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.chunks import CHUNK
from veiltab.server.records.session import Session, check_owner
from veiltab.server.records.store import ServerStore
from veiltab.server.release.perturbation import PLACES, layout_of, published_parts


class Publications:
    """The published columns of releases, and what the server states about them."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store

    def publication_of(self, release_id: str, curator: str) -> Session:
        """Return a release with columns of a curator's."""
        session = self._store.session(release_id)
        check_owner(session.spec, curator)
        return session

    def release_of(self, release_id: str, researcher: str) -> Session:
        """Return a release of a researcher's."""
        session = self._store.session(release_id)
        if session.spec.researcher != researcher:
            raise DeniedError("this release is for another researcher", where=f"release {release_id}")
        return session

    def places_digest_of(self, session: Session) -> bytes:
        """Return SHA-256 of the salt and the places that were sampled for a published release; else empty."""
        if session.state is not ReleaseState.READY or not session.spec.sampling.is_by_server:
            return b""
        digest = hashlib.sha256(session.salt)
        digest.update(published_parts(self._store.published_file(session), session.spec)[PLACES].data)
        return digest.digest()

    def published_column(self, release_id: str, attribute: str, researcher: str) -> tuple[Path, slice]:
        """Return the file of a perturbed column that a researcher may have, and its bytes there."""
        session = self._store.session(release_id)
        session.check_readable(researcher)
        return self._store.published_file(session), layout_of(session.spec)[session.spec.column(attribute).attribute]

    def short_columns_of(self, session: Session) -> Mapping[str, bytes]:
        """Return attribute -> perturbed column of a published release; nothing if together they exceed a chunk."""
        columns, rows = session.spec.columns, session.spec.published_rows
        if session.state is not ReleaseState.READY or sum(one.byte_length(rows) for one in columns) > CHUNK:
            return {}
        parts = published_parts(self._store.published_file(session), session.spec)
        return {one.attribute: parts[one.attribute].tobytes() for one in columns}

    def sampled_places(self, release_id: str, researcher: str) -> tuple[Path, slice]:
        """Return the file of the places that the server sampled, and their bytes there."""
        session = self._store.session(release_id)
        session.check_readable(researcher)
        if not session.spec.sampling.is_by_server:
            raise NotFoundError("the server did not sample this release", where=f"release {release_id}")
        return self._store.published_file(session), layout_of(session.spec)[PLACES]
