"""Refusals of evidence that whoever has a key could otherwise get past: another signer, study file or policy."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.curator.audit.exported_evidence import (  # noqa: F401 - fixtures
    PEM,
    Office,
    failures,
    identity,
    in_index,
    office_fixture,
    replaced,
    rewritten,
)
from tests.worlds.parties import CLOUD
from veiltab.common.errors import IntegrityError
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.evidence import files as evidence_files
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.evidence.files import read_lines, read_text


def test_nobody_but_a_curator_signs_evidence(office: Office) -> None:
    found = failures(rewritten(office, in_index("party", CLOUD.uri), sign=identity(CLOUD)))
    assert "the index is signed by server cloud" in found["signature"]


def test_another_study_file_than_the_auditor_s_is_found(office: Office, study_bytes: bytes) -> None:
    other = study_from_bytes(study_bytes + b"# a remark\n", "study.toml")
    found = {one.what: one.detail for one in check_evidence(office.file, PEM, other).findings if not one.holds}
    assert found == {"study": "the study file is another than yours"}


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'{"audit"', b'{ "audit"'), (b"}", b"} "), (b'"kind":"', b'"kind":"another '), (b'"made_at":', b'"made_at":"x')],
)
def test_an_index_in_another_spelling_is_none(office: Office, old: bytes, new: bytes) -> None:
    with pytest.raises(IntegrityError, match="this is not an index of evidence"):
        check_evidence(rewritten(office, replaced("index.json", old, new)), PEM, None)


def archive_with(path: Path, files: dict[str, bytes]) -> zipfile.ZipFile:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    path.write_bytes(written.getvalue())
    return zipfile.ZipFile(path)


def test_a_file_of_the_evidence_is_whole_and_not_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_files, "_LARGEST_TEXT", 3)
    with archive_with(
        tmp_path / "x.zip", {"text": b"abc", "long": b"abcd", "lines": b"a\nb", "bad": b"\xff\n"}
    ) as archive:
        assert read_text(archive, "text") == "abc"
        with pytest.raises(IntegrityError, match="too long to be what it should be"):
            read_text(archive, "long")
        for name, problem in (("lines", "cut off"), ("bad", "missing, or cannot be read"), ("none", "missing")):
            with pytest.raises(IntegrityError, match=problem) as caught:
                list(read_lines(archive, name))
            assert caught.value.where == name
