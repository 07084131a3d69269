"""The files of a desk: study files, columns that come, counts, certificates."""

from collections.abc import Container
from pathlib import Path

from veiltab.common.errors import NotFoundError
from veiltab.common.release.modes import Pad
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.disk import DiskReservations
from veiltab.common.storage.files import write_whole
from veiltab.common.study.file import Study

_HISTOGRAM = "histogram.bin"
_CERTIFICATE = "certificate"
_NOISY = ".noisy"
_PLACES = "places"

LONGEST_UNSYNCED = 1 << 23
"""Longest column, in bytes, that is written without waiting for the disk; a service that starts fetches it again."""


class DeskFiles:
    """Files below the state folder of a desk.

    Args:
        study: the study file that the service runs with; its bytes are kept, as are those of the ones before it.
    """

    def __init__(self, folder: Path, study: Study) -> None:
        self.folder = folder
        """On whose disk they lie."""
        self.reservations = DiskReservations(folder)
        self.study = study
        if not self._study_path(study.digest).exists():
            write_whole(self._study_path(study.digest), study.source)

    def study_file(self, digest: str) -> Path:
        """Return where the study file of a digest lies, with which this service runs or ran; "" is that of now.

        Raises:
            NotFoundError: it never ran with such a one.
        """
        path = self._study_path(digest or self.study.digest)
        if path not in self.folder.glob("studies/*.toml"):
            raise NotFoundError("this service never ran with such a study file", where="study file")
        return path

    def _study_path(self, digest: str) -> Path:
        return self.folder / "studies" / f"{digest}.toml"

    def noisy_column(self, release_id: str, attribute: str) -> Path:
        """Return where a perturbed column lies, still encrypted."""
        return self.folder / "releases" / release_id / f"{attribute}{_NOISY}"

    def places(self, release_id: str) -> Path:
        """Return where the places that the server sampled lie."""
        return self.folder / "releases" / release_id / _PLACES

    def one_time_pad(self, release_id: str, attribute: str) -> Path:
        """Return where the one-time pad of a column lies while it is used."""
        return self.folder / "releases" / release_id / f"{attribute}.pad"

    def certificate(self, release_id: str) -> Path:
        """Return where the certificate of a release lies, once its parties have signed."""
        return self.folder / "releases" / release_id / _CERTIFICATE

    def histogram(self, release_id: str) -> Path:
        """Return where the counts of the noisy rows lie."""
        return self.folder / "releases" / release_id / _HISTOGRAM

    def bytes_to_come(self, spec: TableSpec, *, are_sent: bool = False) -> int:
        """Return the bytes that a release has still to write here at most; columns are not if they are sent."""
        columns = () if are_sent else spec.columns
        missing = [c for c in columns if not self.noisy_column(spec.release_id, c.attribute).exists()]
        return (
            sum(column.byte_length(spec.published_rows) for column in missing)
            + (spec.ciphertext_bytes if spec.pad is Pad.OTP else 0)
            + 8 * spec.cells
            + spec.place_bytes
        )

    def delete_columns(self, release_id: str) -> None:
        """Delete the columns and one-time pads of a release that is over: its counts and its certificate are kept."""
        for path in (self.folder / "releases" / release_id).glob("*"):
            if path.name not in {_HISTOGRAM, _CERTIFICATE}:
                path.unlink()

    def delete_leftovers(self, unfinished: Container[str]) -> None:
        """Delete what a crash, or a version that kept rows, left of releases: all but counts and long columns.

        A release that is not over keeps its long perturbed columns, which are still encrypted. Short ones may have been
        torn by a failing power.
        """
        for folder in (self.folder / "releases").glob("*"):
            if folder.name not in unfinished:
                self.delete_columns(folder.name)
                continue
            for path in folder.glob("*"):
                if path.suffix != _NOISY or path.stat().st_size <= LONGEST_UNSYNCED:
                    path.unlink()
