"""The commands that make, renew and show certificates."""

from datetime import timedelta
from pathlib import Path

import click

from veiltab.common.command.cli import PATH, emit
from veiltab.common.command.parties import named_party
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.rpc.parties.identity import party_of_certificate, utc_now
from veiltab.common.rpc.parties.revocation import FILE
from veiltab.common.study.file import load_study
from veiltab.deploy.pki.certificates import LIFETIME, init_pki, issue_party, revoke_certificates
from veiltab.deploy.pki.cluster import init_cluster

_study = click.argument("study", type=PATH, metavar="STUDY.toml")
_days = click.option(
    "--days", type=click.IntRange(1, 3650), default=LIFETIME.days, show_default=True, help="Lifetime of certificates."
)


@click.group()
def pki() -> None:
    """Make and renew the certificates by which the parties of a study authenticate one another.

    Example: veiltab pki init study.toml --out pki
    """


@pki.command()
@click.argument("study", type=PATH, metavar="[STUDY.toml]", required=False)
@click.option("--cluster", is_flag=True, help="Instead of a study, of a Dask cluster that computes for one party.")
@click.option("--out", type=PATH, required=True, help="Folder to make.")
@_days
def init(study: Path | None, cluster: bool, out: Path, days: int) -> None:
    """Make the authority of a study and, for each party, a folder with its key and certificate.

    Each folder goes to the machine of its party as it is. Keep ca.key away from all of them: anyone who holds it can
    pose as any party.

    With --cluster: the authority, the certificates and the key of tasks of a Dask cluster. Anyone who has a certificate
    of this authority runs code on every machine of the cluster, and on the party's: make one for each party.

    Example: veiltab pki init study.toml --out pki --days 365
    """
    if cluster == (study is not None):
        raise InvalidInputError("name either a study file or --cluster", where="STUDY.toml, --cluster")
    lifetime = timedelta(days=days)
    if study is None:
        cluster_folders = init_cluster(out, lifetime=lifetime)
        lines = [f"{role}: {folder}" for role, folder in cluster_folders.items()]
        emit(
            {"authority": out / "ca.pem", "folders": cluster_folders},
            "\n".join([*lines, "Copy each folder to its machines; give the party the folder client as dask-identity."]),
        )
        return
    folders = init_pki(load_study(study), out, lifetime=lifetime)
    lines = [f"{party}: {folder}" for party, folder in folders.items()]
    emit(
        {"authority": out / "ca.pem", "parties": {party.uri: folder for party, folder in folders.items()}},
        "\n".join(
            [*lines, f"Carry each folder to its party's machine. Keep {out / 'ca.key'} where no party can read it."]
        ),
    )


@pki.command()
@_study
@click.option("--pki", "directory", type=PATH, required=True, help="Folder that `pki init` made, with ca.key.")
@click.option("--party", "who", required=True, metavar="ROLE/NAME", help="Whose, such as curator/alice.")
@_days
def issue(study: Path, directory: Path, who: str, days: int) -> None:
    """Give one party a new key and certificate: to renew them, or as the study file has the party since `pki init`.

    They replace those in its folder. Other parties need no new file; the old certificate is good until it expires, or
    is revoked.

    Example: veiltab pki issue study.toml --pki pki --party curator/alice
    """
    loaded = load_study(study)
    party = named_party(loaded, who, "--party")
    folder = issue_party(loaded, directory, party, lifetime=timedelta(days=days))
    then = "Put this folder in the place of the one that the party uses, and start it, or send it SIGHUP if it runs."
    emit({"party": party.uri, "directory": folder}, f"{party}: {folder}. {then}")


@pki.command()
@click.argument("certificate", type=PATH, metavar="CERT.pem")
def show(certificate: Path) -> None:
    """Show whose a certificate is, its lifetime and its serial number.

    Example: veiltab pki show pki/curator-alice/alice.pem
    """
    try:
        party, since, until, serial = party_of_certificate(certificate.read_bytes())
    except OSError as error:
        raise NotFoundError(f"the certificate cannot be read ({error.strerror})", where=str(certificate)) from None
    valid = since <= utc_now() <= until
    data = {
        "party": party.uri,
        "not_before": since.isoformat(),
        "not_after": until.isoformat(),
        "valid_now": valid,
        "serial": f"{serial:x}",
    }
    state = "valid" if valid else "NOT valid now"
    emit(data, f"{party.uri}: {state}, from {since:%F %T} to {until:%F %T} UTC, serial number {serial:x}")


@pki.command()
@_study
@click.option("--pki", "directory", type=PATH, required=True, help="Folder that `pki init` made, with ca.key.")
@click.option("--party", "who", metavar="ROLE/NAME", help="Revoke every certificate of this party.")
@click.option("--serial", help="Revoke one certificate by its serial number, which `pki show` prints.")
def revoke(study: Path, directory: Path, who: str | None, serial: str | None) -> None:
    """Revoke certificates whose keys may have leaked, and write crl.pem, the list that every party must get.

    Copy it into the folder that each party uses: running parties read it at the next call. Then `pki issue` makes a new
    certificate.

    Example: veiltab pki revoke study.toml --pki pki --party curator/alice
    """
    loaded = load_study(study)
    if (who is None) == (serial is None):
        raise InvalidInputError("name either a party or a serial number", where="--party, --serial")
    party = None if who is None else named_party(loaded, who, "--party")
    revoked = revoke_certificates(loaded, directory, party=party, serial=None if serial is None else _serial(serial))
    emit(
        {"revoked": [f"{number:x}" for number in revoked], "list": directory / FILE},
        f"{len(revoked)} certificates revoked: {directory / FILE}. Copy it into the folder that each party uses.",
    )


def _serial(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise InvalidInputError("the serial number is not hexadecimal", where="--serial") from None
