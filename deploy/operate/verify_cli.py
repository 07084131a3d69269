"""`veiltab verify`: check a release certificate, or the evidence of a curator, offline, line by line."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, note
from veiltab.common.core.texts.spelling import escaped
from veiltab.common.errors import IntegrityError, InvalidInputError, NotReadyError
from veiltab.common.release.guarantees import release_card
from veiltab.common.rpc.certificates.release_certificate import LONGEST, ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import Finding, to_dict, verified
from veiltab.common.study.file import load_study
from veiltab.curator.evidence.beside import split_views
from veiltab.curator.evidence.check import check_beside, check_evidence

_ARCHIVE = b"PK"
"""How evidence begins, an archive, and no certificate does."""

_MARKS = {True: "ok         ", False: "FAILED     ", None: "not checked"}


@click.command(
    epilog="Example: veiltab verify wages.certificate --study study.toml --authority pki/ca.pem\n\n" + EXIT_CODES
)
@click.argument("file", type=PATH, metavar="FILE")
@click.option("--study", "study_path", type=PATH, help="The study file that it must be of; needed for a release.")
@click.option("--authority", type=PATH, help="Certificate of the study's authority, had from elsewhere (ca.pem).")
@click.option("--revoked", type=PATH, help="The authority's revocation list (crl.pem): nobody on it may have signed.")
@click.option(
    "--beside",
    multiple=True,
    type=PATH,
    help="Evidence of another curator: finds a ledger that was written anew after others had seen it.",
)
@click.option("--untested", is_flag=True, help="A release holds too whose server was tested too little, or not at all.")
@click.pass_context
def verify(
    context: click.Context,
    file: Path,
    study_path: Path | None,
    authority: Path | None,
    revoked: Path | None,
    beside: tuple[Path, ...],
    untested: bool,
) -> None:
    """Check who vouches for a release, how well its server was tested, and which epsilon each adversary faces.

    It needs nothing but the file, the study file and the certificate of the study's authority. The epsilons are
    computed anew from the release's description. Of the evidence that a curator exports it checks the signature, every
    digest and both chains; with --beside also that its ledger is the one that other curators have seen. The exit code
    is 0 if every line holds, and 5 if one does not. Without --authority it is 4 at best: the file may be of anybody who
    made an authority. It is 4 also where the server was tested too little, or not at all, unless you say --untested.
    """
    study = None if study_path is None else load_study(study_path)
    issuer = None if authority is None else file_content(authority)
    if _read_at_most(file, len(_ARCHIVE)) == _ARCHIVE:
        evidence = check_evidence(file, issuer, study, revoked)
        others = [check_evidence(path, issuer, study, revoked) for path in beside]
        compared = [line for other in others for line in check_beside(evidence, other)]
        together = split_views((escaped(one.index.party), seen) for one in (evidence, *others) for seen in one.seen)
        evidence = replace(evidence, findings=(*evidence.findings, *compared, *together))
        about, kind = f"Evidence of {escaped(evidence.index.party)}", "evidence"
        findings, plain = evidence.findings, evidence.as_dict()
    elif beside:
        raise click.UsageError("--beside compares evidence with evidence, and this is no evidence.")
    elif study is None:
        raise click.UsageError("A release certificate is checked against its study file: name it by --study.")
    else:
        certificate = ReleaseCertificate.from_text(file_text(file))
        if certificate.spec.several:
            note(f"pricing {len(certificate.tables)} tables anew, and checking each: about half a minute for a hundred")
        findings = verified(certificate, study, issuer, revoked, untested=untested)
        about, kind = _about(certificate, findings), "certificate"
        plain = to_dict(certificate, findings)
    end, code = _verdict(kind, findings)
    lines = [f"{_MARKS[one.holds]}  {one.what}: {one.detail}" for one in findings]
    emit(plain, "\n".join([f"{end} {about}.", "", *lines]))
    context.exit(code)


def _about(certificate: ReleaseCertificate, findings: Sequence[Finding]) -> str:
    """Return a release and its tables in a line, with the guarantee against the analyst if every line holds."""
    release = certificate.spec
    tables = f", {len(certificate.tables)} tables together" if certificate.spec.several else ""
    about = f"Release {release.release_id}{tables}"
    if not all(one.holds for one in findings):
        return about
    reader, *_ = release_card(release).bounds
    return f"{about}, {reader.name} faces {reader.limit}"


def _verdict(kind: str, findings: Sequence[Finding]) -> tuple[str, int]:
    """Return what a verification comes to, and its exit code."""
    if any(one.holds is False for one in findings):
        return f"This {kind} does not hold.", IntegrityError.exit_code
    if not all(one.holds for one in findings):
        missing = ", ".join(one.what for one in findings if one.holds is None)
        return f"Nothing fails, but this was not shown: {missing}.", NotReadyError.exit_code
    return "Every line holds.", 0


def file_text(path: Path) -> str:
    """Return what may be a release certificate.

    Raises:
        InvalidInputError: it cannot be read.
        IntegrityError: it is no text, or too long.
    """
    try:
        return file_content(path).decode()
    except UnicodeDecodeError:
        raise IntegrityError("this is not a release certificate, or it was altered", where=str(path)) from None


def _read_at_most(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InvalidInputError(f"the file cannot be read ({error.strerror})", where=str(path)) from None


def file_content(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        InvalidInputError: it cannot be read.
        IntegrityError: it is too long.
    """
    data = _read_at_most(path, LONGEST + 1)
    if len(data) > LONGEST:
        raise IntegrityError("the file is too long to be what it should be", where=str(path))
    return data
