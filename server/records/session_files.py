"""Where the columns of releases lie at the server, and when they are deleted."""

from pathlib import Path

from veiltab.common.release.state import ReleaseState
from veiltab.server.records.session import Session
from veiltab.server.sharing.folders import ReleaseFolder


class SessionFiles:
    """The folders of releases, below the server's state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, release_id: str) -> ReleaseFolder:
        """Return where the columns of a release lie."""
        return ReleaseFolder(self._folder / "releases" / release_id)

    def published_file(self, session: Session) -> Path:
        """Return where the columns of a published release lie."""
        return self.folder(session.spec.release_id).published(session.publication)

    def delete_ciphertext(self, release_id: str) -> None:
        """Delete the unperturbed columns of a release that is published or ended: a state that never changes back."""
        self.folder(release_id).delete_ciphertext()

    def delete_unpublished(self, session: Session) -> None:
        """Delete what was perturbed of a release that is published or ended, but for its publication."""
        is_ready = session.state is ReleaseState.READY
        self.folder(session.spec.release_id).delete_outputs_but(self.published_file(session) if is_ready else None)
