"""`veiltab verify`: check a release certificate, or the evidence of a curator, offline, line by line."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from veiltab.common.command.cli import PATH, emit, note
from veiltab.common.command.new_files import NEW_FILE
from veiltab.common.command.rare_options import rare_options
from veiltab.common.core.texts.spelling import escaped
from veiltab.common.errors import IntegrityError, NotReadyError
from veiltab.common.release.guarantees import release_card, release_test
from veiltab.common.rpc.certificates.certificate_files import authority_pem, file_text, read_at_most
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import Finding, to_dict, verified
from veiltab.common.study.file import load_study
from veiltab.curator.evidence.check import check_beside, check_evidence
from veiltab.curator.evidence.ledger_comparison import split_views
from veiltab.deploy.registry.entry_file import ABOUT, write_entry

_ARCHIVE = b"PK"
"""How evidence begins, an archive, and no certificate does."""

_MARKS = {True: "ok         ", False: "FAILED     ", None: "not checked"}


@click.command(epilog="Example: veiltab verify wages.certificate --study study.toml --authority pki/ca.pem")
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
@click.option(
    "--as",
    "form",
    type=click.Choice(["registry"]),
    help="Write what a certificate that holds says as an entry of OpenDP's registry of deployments, into --out.",
)
@click.option("--out", type=NEW_FILE, help="Where to write it; it must not be there yet.")
@rare_options("--about", *ABOUT, about="What an entry says besides")
@click.option("--untested", is_flag=True, help="A release holds too whose server was tested too little, or not at all.")
def verify(
    file: Path,
    study_path: Path | None,
    authority: Path | None,
    revoked: Path | None,
    beside: tuple[Path, ...],
    untested: bool,
    form: str | None,
    out: Path | None,
    **about_it: Any,  # noqa: ANN401 - what an entry says besides
) -> None:
    """Check who vouches for a release, how well its server was tested, and which epsilon each adversary faces.

    It needs nothing but the file, the study file and the certificate of the study's authority. The epsilons are
    computed anew from the release's description. Of the evidence that a curator exports it checks the signature, every
    digest and both chains; with --beside also that its ledger is the one that other curators have seen. The exit code
    is 0 if every line holds, and 5 if one does not. Without --authority it is 4 at best: the file may be of anybody who
    made an authority. It is 4 also where the server was tested too little, or not at all, unless you say --untested.

    With --as registry it writes nothing if a line does not hold. Region, use and sector are not in the certificate:
    give them, or complete the draft; then propose it at github.com/opendp/deployments-registry-data.
    """
    if form is not None:
        if study_path is None or authority is None or out is None:
            raise click.UsageError("An entry needs --study, --authority and --out.")
        write_entry(file, study_path, authority, revoked, out, **about_it)
        return
    study = None if study_path is None else load_study(study_path)
    issuer = None if authority is None else authority_pem(authority)
    if read_at_most(file, len(_ARCHIVE)) == _ARCHIVE:
        evidence = check_evidence(file, issuer, study, revoked)
        others = [check_evidence(path, issuer, study, revoked) for path in beside]
        compared = [line for other in others for line in check_beside(evidence, other)]
        together = split_views((escaped(one.index.party), view) for one in (evidence, *others) for view in one.views)
        evidence = replace(evidence, findings=(*evidence.findings, *compared, *together))
        about, kind = f"Evidence of {escaped(evidence.index.party)}", "evidence"
        findings, plain = evidence.findings, evidence.as_dict()
    elif beside:
        raise click.UsageError("--beside compares evidence with evidence, and this is not evidence.")
    else:
        certificate = ReleaseCertificate.from_text(file_text(file), str(file))
        if study is None:
            raise click.UsageError("A release certificate is checked against its study file: name it by --study.")
        if certificate.spec.several:
            note(f"pricing {len(certificate.tables)} tables anew, and checking each: about half a minute for a hundred")
        findings = verified(certificate, study, issuer, revoked, untested=untested)
        about, kind = _about(certificate, findings), "certificate"
        plain = to_dict(certificate, findings)
        findings = tuple(_in_short(certificate, findings))
    end, code = _verdict(kind, findings)
    lines = [f"{_MARKS[one.holds]}  {one.what}: {one.detail}" for one in findings]
    emit(plain, "\n".join([f"{end} {about}.", "", *lines]))
    click.get_current_context().exit(code)


def _about(certificate: ReleaseCertificate, findings: Sequence[Finding]) -> str:
    """Return a release and its tables in a line, with the guarantee against the analyst if every line holds."""
    release = certificate.spec
    tables = f", {len(certificate.tables)} tables together" if certificate.spec.several else ""
    about = f"Release {release.release_id}{tables}"
    if not all(one.holds for one in findings):
        return about
    reader, *_ = release_card(release).bounds
    return f"{about}, {reader.name} faces {reader.limit}"


def _in_short(certificate: ReleaseCertificate, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield findings, with one line in the place of those of all tables that hold, or that were not tested enough."""
    counts = Counter(one.holds for one in findings if one.table is not None)
    for one in findings:
        if one.table is None:
            yield one
        elif number := counts.pop(one.holds, 0):
            verdict = "hold" if one.holds else "were not tested enough, and nothing else fails of them"
            detail = f"{number} of {len(certificate.tables)} tables {verdict}. Of the one that is tested least: "
            yield replace(one, what="each table", detail=detail + release_test(certificate.spec).sentence)


def _verdict(kind: str, findings: Sequence[Finding]) -> tuple[str, int]:
    """Return what a verification comes to, and its exit code."""
    if any(one.holds is False for one in findings):
        return f"This {kind} does not hold.", IntegrityError.exit_code
    if not all(one.holds for one in findings):
        missing = ", ".join(one.what for one in findings if one.holds is None)
        return f"Nothing fails, but this was not shown: {missing}.", NotReadyError.exit_code
    return "Every line holds.", 0
