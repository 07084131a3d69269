"""`veiltab verify`: check a release certificate, or the evidence of a curator, offline, line by line."""

from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option
from veiltab.common.core.spelling import escaped
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.release_certificate import ReleaseCertificate, to_dict, verified
from veiltab.common.study.file import load_study
from veiltab.curator.audit.evidence_check import check_evidence

_LARGEST = 2**24
_ARCHIVE = b"PK"
"""How evidence begins, an archive, and no certificate does."""


@click.command(
    epilog="Example: veiltab verify wages.certificate --study study.toml --authority pki/ca.pem\n\n" + EXIT_CODES
)
@click.argument("file", type=PATH, metavar="FILE")
@click.option("--study", "study_path", type=PATH, help="The study file that it must be of; needed for a release.")
@click.option("--authority", type=PATH, help="Certificate of the study's authority (ca.pem), if you have it.")
@click.option("--revoked", type=PATH, help="The authority's revocation list (crl.pem): nobody on it may have signed.")
@json_option
@click.pass_context
def verify(
    context: click.Context,
    file: Path,
    study_path: Path | None,
    authority: Path | None,
    revoked: Path | None,
    as_json: bool,
) -> None:
    """Check who vouches for a release, that its server added the noise, and which epsilon each adversary faces.

    It needs nothing but the file, the study file and, best, the certificate of the study's authority. The epsilons are
    computed anew from the release's description. Of the evidence that a curator exports it checks the signature, every
    digest and both chains. The exit code is 0 if every line holds, and 5 if one does not.
    """
    study = None if study_path is None else load_study(study_path)
    issuer = None if authority is None else _read(authority)
    if _is_archive(file):
        evidence = check_evidence(file, issuer, study, revoked)
        about, kind = f"Evidence of {escaped(evidence.index.party)}", "evidence"
        findings, plain = evidence.findings, evidence.as_dict()
    elif study is None:
        raise click.UsageError("A release certificate is checked against its study file: name it by --study.")
    else:
        certificate = ReleaseCertificate.from_text(_text(file))
        findings = verified(certificate, study, issuer, revoked)
        about, kind = f"Release {certificate.spec.release_id}", "certificate"
        plain = to_dict(certificate, findings)
    holds = all(one.holds for one in findings)
    lines = [f"{'ok    ' if one.holds else 'FAILED'}  {one.what}: {one.detail}" for one in findings]
    lines.append(f"{about}: " + ("every line holds." if holds else f"this {kind} does not hold."))
    emit(as_json, plain, "\n".join(lines))
    if not holds:
        context.exit(IntegrityError.exit_code)


def _is_archive(path: Path) -> bool:
    return _read_at_most(path, len(_ARCHIVE)) == _ARCHIVE


def _text(path: Path) -> str:
    try:
        return _read(path).decode()
    except UnicodeDecodeError:
        raise IntegrityError("this is no release certificate, or it was altered", where=str(path)) from None


def _read_at_most(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InvalidInputError(f"the file cannot be read ({error.strerror})", where=str(path)) from None


def _read(path: Path) -> bytes:
    data = _read_at_most(path, _LARGEST + 1)
    if len(data) > _LARGEST:
        raise IntegrityError("the file is too long to be what it should be", where=str(path))
    return data
