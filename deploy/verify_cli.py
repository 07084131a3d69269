"""`veiltab verify`: check a release certificate offline, line by line."""

from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.release_certificate import ReleaseCertificate, to_dict, verified
from veiltab.common.study.file import load_study

_LARGEST = 2**24


@click.command(
    epilog="Example: veiltab verify wages.certificate --study study.toml --authority pki/ca.pem\n\n" + EXIT_CODES
)
@click.argument("file", type=PATH, metavar="FILE")
@click.option("--study", "study_path", type=PATH, required=True, help="The study file that the release must be of.")
@click.option("--authority", type=PATH, help="Certificate of the study's authority (ca.pem), if you have it.")
@json_option
@click.pass_context
def verify(context: click.Context, file: Path, study_path: Path, authority: Path | None, as_json: bool) -> None:
    """Check who vouches for a release, that its server added the noise, and which epsilon each adversary faces.

    It needs nothing but the file, the study file and, best, the certificate of the study's authority. The epsilons are
    computed anew from the release's description. The exit code is 0 if every line holds, and 5 if one does not.
    """
    certificate = ReleaseCertificate.from_text(_text(file))
    findings = verified(certificate, load_study(study_path), None if authority is None else _read(authority))
    lines = [f"{'ok    ' if one.holds else 'FAILED'}  {one.what}: {one.detail}" for one in findings]
    holds = all(one.holds for one in findings)
    lines.append(
        f"Release {certificate.spec.release_id}: "
        + ("every line holds." if holds else "this certificate does not hold.")
    )
    emit(as_json, to_dict(certificate, findings), "\n".join(lines))
    if not holds:
        context.exit(IntegrityError.exit_code)


def _text(path: Path) -> str:
    try:
        return _read(path).decode()
    except UnicodeDecodeError:
        raise IntegrityError("this is no release certificate, or it was altered", where=str(path)) from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidInputError(f"the file cannot be read ({error.strerror})", where=str(path)) from None
    if len(data) > _LARGEST:
        raise IntegrityError("the file is too long to be what it should be", where=str(path))
    return data
