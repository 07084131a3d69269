"""Files that a browser saves: safe names, and files of any size that are sent as they are read."""

import re
from collections.abc import Callable
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from veiltab.common.storage.temporary import TemporaryFolder
from veiltab.researcher.status.release_status import Status

_UNSAFE = re.compile(r"[^a-z0-9_-]+")
_LONGEST = 80

MEDIA_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
}


def file_name(status: Status, part: str = "", *, suffix: str) -> str:
    """Return the name of a file of a release, of plain letters, digits and dashes whatever the label is."""
    label = _plain(status.label) or status.release_id[:12]
    return "-".join(filter(None, (label, _plain(part))))[:_LONGEST] + suffix


def sent_file(path: Path, name: str) -> Response:
    """Return a file that the browser saves under a name."""
    return FileResponse(path, filename=name, media_type=MEDIA_TYPES[path.suffix])


def written_file(write: Callable[[Path], object], name: str) -> Response:
    """Return what a function writes to a file, as a file that the browser saves; nothing of it stays behind.

    Args:
        write: writes it; the suffix of its path is that of the name.
        name: as `file_name` makes it.
    """
    folder = TemporaryFolder()
    path = folder.path / f"file{Path(name).suffix}"
    try:
        write(path)
    except BaseException:
        folder.delete()
        raise
    response = sent_file(path, name)
    response.background = BackgroundTask(folder.delete)
    return response


def _plain(text: str) -> str:
    return _UNSAFE.sub("-", text.lower()).strip("-")
