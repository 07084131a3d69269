"""What an evidence file consists of; its writer, its checker and its page share this.

An evidence file is a ZIP archive. `index.json` names every other file with its SHA-256, and where the ledger and the
audit log stood; `index.signature` is the curator's signature of it, with the certificate of its key. See
docs/evidence.md for what each file holds, and for how somebody else recomputes the chains.
"""

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from veiltab.common.core.texts.canonical import canonical_json, canonical_text, read_canonical
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import asdict, dataclass
from veiltab.common.errors import IntegrityError, VeiltabError
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.curator.progress.release_record import Approval, CuratorRelease, GrantDecision

FORMAT = "veiltab evidence 1"
INDEX, SIGNATURE, PAGE = "index.json", "index.signature", "index.html"
STUDY, POLICY, AUTHORITY = "study.toml", "policy.toml", "authority.pem"
LEDGER, AUDIT, RELEASES, STATEMENTS = "ledger.jsonl", "audit.jsonl", "releases.jsonl", "statements.jsonl"
WITNESSED = "witnessed.jsonl"
CERTIFICATES = "certificates/"
DAMAGED = (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError)
"""What reading a damaged archive raises."""
MOST_FILES = 10_000
"""Files of an archive: a release certificate is one."""

_LONGEST_LINE = 2**26
_UTF_8 = 0x800
"""Flag of a name in UTF-8."""

_DIRECTORY_ENTRY, _DIRECTORY_END = 46, 22
"""Bytes of the list of files in an archive: beside the name of each, and behind the last."""

_LARGEST_TEXT = 2**26
_UNREADABLE = (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, VeiltabError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigest:
    """A file of the archive.

    Args:
        size: bytes of its content.
        sha256: of its content, hexadecimal.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceIndex:
    """The index of an evidence file, which is signed.

    Args:
        party: URI of the curator.
        made_at: Unix seconds.
        made_by: the person who exported it.
        files: all others, sorted by name.
        ledger: where the ledger stood; the file holds all of it.
        audit_before: where the audit log stood before the first entry in the file.
        audit: where it stood after the last.
        since: first Unix second of what was decided and recorded, if not all of it is there.
        policy: SHA-256 of the whole policy file, of which the archive has no comments and no [notify].
    """

    kind: str
    party: str
    made_at: int
    made_by: str
    files: tuple[FileDigest, ...]
    ledger: LedgerHead
    audit_before: LedgerHead
    audit: LedgerHead
    since: int | None = None
    policy: str | None = None

    @classmethod
    def from_text(cls, text: str) -> "EvidenceIndex":
        """Read an index.

        Raises:
            IntegrityError: it is none, or not as it was written.
        """
        try:
            index = read_canonical(cls, text)
            if index.kind == FORMAT and canonical_text(index) == text:
                return index
        except _UNREADABLE:
            pass
        raise IntegrityError("this is not an index of evidence", where=INDEX)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """A request as it is recorded at one curator.

    Args:
        release: the request, its state and its plan.
        approvals: what persons approved of it.
    """

    release: CuratorRelease
    decisions: tuple[GrantDecision, ...]
    approvals: tuple[Approval, ...]

    def line(self) -> str:
        """Return the record as a line of the archive."""
        release = self.release
        planned = release.planned or release.spec
        plain = {
            "release": release.request.release_id,
            "request": release.request.to_json(),
            "request_digest": release.request_digest.hex(),
            "state": release.state.value,
            **same_fields(release, ("study_digest", "created", "since", "failure")),
            "plan": None if planned is None else planned.to_json(),
            "decisions": [asdict(one) for one in self.decisions],
            "approvals": [asdict(one) | {"request_digest": one.request_digest.hex()} for one in self.approvals],
        }
        return canonical_json(plain)


def asked_under_text(digests: Iterable[str], digest: str) -> str:
    """Return how many requests were made under a study file, and how many under others.

    Args:
        digests: of the study file of each request.
    """
    counts = Counter(one == digest for one in digests)
    return f"requests made under it: {counts[True]}, under other versions of it: {counts[False]}"


def statement_line(release: CuratorRelease, statement: SignedText) -> str:
    """Return a signed statement, with the spec that it is about, as a line of the archive."""
    plain = {
        "release": release.request.release_id,
        "spec": release.planned_spec.to_json(),
        "text": statement.text,
        "signature": statement.signature,
        "certificate": statement.certificate,
    }
    return canonical_json(plain)


def check_archive(path: Path, archive: zipfile.ZipFile, most_bytes: int) -> None:
    """Refuse an archive that is not as it is written, but for how its files are compressed.

    A program that reads the stream sees the files that the list at the end has, and no other.

    Args:
        most_bytes: of all files, once they are unpacked.

    Raises:
        IntegrityError: it is too large, a file stands twice or is compressed in another way, or more is there.
    """
    files, end = archive.infolist(), 0
    if sum(one.file_size for one in files) > most_bytes:
        raise IntegrityError("the evidence is too large", where=str(path))
    names = {one.filename for one in files}
    is_written = len(names) == len(files) <= MOST_FILES
    with path.open("rb") as stream:
        for one in files if is_written else ():
            header = one.FileHeader(zip64=True)
            stream.seek(end)
            is_plain = one.compress_type == zipfile.ZIP_DEFLATED and not one.flag_bits & ~_UTF_8
            is_written &= is_plain and one.header_offset == end and stream.read(len(header)) == header
            end += len(header) + one.compress_size
    listed = sum(_DIRECTORY_ENTRY + len(name.encode()) for name in names) + _DIRECTORY_END
    if not (is_written and archive.start_dir == end and path.stat().st_size == end + listed):
        raise IntegrityError(
            "the archive is not in the form in which a curator writes evidence, such as after it was packed anew",
            where=str(path),
            remedy="Verify the file that the curator exported.",
        )


def read_text(archive: zipfile.ZipFile, name: str) -> str:
    """Return a text of an archive.

    Raises:
        IntegrityError: it is missing, too long, or no text.
    """
    try:
        with archive.open(name) as file:
            content = file.read(_LARGEST_TEXT + 1)
            text = content.decode()
    except (KeyError, UnicodeDecodeError, *DAMAGED):
        raise IntegrityError("this file of the evidence is missing, or cannot be read", where=name) from None
    if len(content) > _LARGEST_TEXT:
        raise IntegrityError("this file of the evidence is too long to be what it should be", where=name)
    return text


def read_lines(archive: zipfile.ZipFile, name: str) -> Iterator[str]:
    """Return the lines of a file of an archive, one in memory at a time.

    Raises:
        IntegrityError: as `read_text`.
    """
    try:
        with archive.open(name) as file:
            while line := file.readline(_LONGEST_LINE):
                if not line.endswith(b"\n"):
                    raise IntegrityError("a line of the evidence is cut off, or too long", where=name)
                yield line[:-1].decode()
    except (KeyError, UnicodeDecodeError, *DAMAGED):
        raise IntegrityError("this file of the evidence is missing, or cannot be read", where=name) from None
