"""`veiltab certificate`: a release certificate in the forms that others read, once it is verified."""

import functools
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option
from veiltab.common.command.options import identity_option
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import written_whole
from veiltab.deploy.attest.registry_entry import PRODUCTS, SECTORS

if TYPE_CHECKING:
    from veiltab.deploy.attest.certified import Certified

_INPUTS = "wages.certificate --study study.toml --authority ca.pem"
_MOST = 1000

_OPTIONS = (
    click.argument("file", type=PATH, metavar="FILE"),
    click.option("--study", "study_path", required=True, type=PATH, help="The study file that it must be of."),
    click.option(
        "--authority",
        required=True,
        type=PATH,
        help="Certificate of the study's authority, had from elsewhere (ca.pem).",
    ),
    click.option(
        "--revoked", type=PATH, help="The authority's revocation list (crl.pem): nobody on it may have signed."
    ),
    click.option("--out", required=True, type=PATH, help="Where to write; it must not be there yet."),
    json_option,
)
certificate_option = click.option(
    "--with-certificate", is_flag=True, help="Put the certificate in: for those who audit, never beside results."
)


def with_certified(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the release of a certificate that holds, and a place where nothing is yet."""

    @functools.wraps(command)
    def checked(
        file: Path, study_path: Path, authority: Path, revoked: Path | None, out: Path, **options: object
    ) -> None:
        from veiltab.deploy.attest.certified import check_new, read_certified

        check_new(out)
        command(read_certified(file, study_path, authority, revoked), out=out, **options)

    wrapped: Callable[..., None] = checked
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


@click.group(epilog=f"Example: veiltab certificate nist {_INPUTS} --out wages.md\n\n" + EXIT_CODES)
def certificate() -> None:
    """Give on what a release certificate says: to a registry, an archive, an evaluator, or tools that verify envelopes.

    Each command verifies the file first, as `veiltab verify` does, and writes nothing if a line does not hold. None of
    them shows counts of the server's tests unless you ask for the certificate itself.
    """


def _printable(_context: click.Context, option: click.Parameter, value: str | tuple[str, ...] | None) -> object:
    for text in (value,) if isinstance(value, str) else value or ():
        if not text.strip() or not text.isprintable() or len(text) > _MOST:
            raise InvalidInputError(
                "this is not one printable line",
                where=option.opts[0],
                remedy=f"Write 1 to {_MOST} characters in one line.",
            )
    return value


@certificate.command(
    epilog=f'Example: veiltab certificate registry {_INPUTS} --out wages.yaml --author "Ana Diaz" --region Denmark'
    ' --use "Wages by education, for a report"'
)
@with_certified
@click.option("--author", "authors", multiple=True, required=True, callback=_printable, help="Who fills in the entry.")
@click.option("--name", callback=_printable, help="Name of the data product; by default the study's title.")
@click.option(
    "--curator",
    "curators",
    multiple=True,
    callback=_printable,
    help="Who publishes it; by default as in the study file.",
)
@click.option("--use", callback=_printable, help="What the data product is for.")
@click.option("--region", callback=_printable, help="Region that it is about, or whose law applies.")
@click.option("--product", type=click.Choice(PRODUCTS), default=PRODUCTS[0], show_default=True, help="What it is.")
@click.option("--sector", type=click.Choice(SECTORS), help="Industry or domain that it is about.")
@click.option(
    "--published", type=click.DateTime(["%Y-%m-%d"]), help="Day of publication; by default that of the last signature."
)
def registry(
    one: "Certified",
    out: Path,
    authors: tuple[str, ...],
    name: str | None,
    curators: tuple[str, ...],
    use: str | None,
    region: str | None,
    product: str,
    sector: str | None,
    published: datetime | None,
    as_json: bool,
) -> None:
    """Write a draft for OpenDP's registry of deployments of differential privacy, in YAML.

    Region, use and sector are not in the certificate: give them, or complete the draft. Then propose it at
    github.com/opendp/deployments-registry-data.
    """
    from veiltab.deploy.attest.certified import NOT_STATED
    from veiltab.deploy.attest.registry_entry import Facts, check_file_name, registry_entry

    check_file_name(out.name)
    facts = Facts(
        authors=authors,
        name=name,
        curators=curators,
        use=use or NOT_STATED,
        region=region or NOT_STATED,
        product=product,
        sector=sector,
        published=None if published is None else f"{published:%Y-%m-%d}",
    )
    _write(out, registry_entry(one, facts))
    missing = [f"--{key}" for key, value in (("use", use), ("region", region), ("sector", sector)) if value is None]
    later = f"\nTo complete: {', '.join(missing)}" if missing else ""
    emit(as_json, _plain(one, out) | {"to_complete": missing}, f"Draft: {out}{later}")


@certificate.command(epilog=f"Example: veiltab certificate crate {_INPUTS} --out wages-crate")
@with_certified
@certificate_option
def crate(one: "Certified", out: Path, with_certificate: bool, as_json: bool) -> None:
    """Write a folder that is a Five Safes RO-Crate: the record of this release, for archives."""
    from veiltab.deploy.attest.crate import write_crate

    files = write_crate(one, out, with_certificate=with_certificate)
    emit(as_json, _plain(one, out) | {"files": list(files)}, f"Crate: {out}, with {', '.join(files)}")


@certificate.command(epilog=f"Example: veiltab certificate nist {_INPUTS} --out wages.md")
@with_certified
def nist(one: "Certified", out: Path, as_json: bool) -> None:
    """Write a page, in Markdown, that answers the questions of NIST SP 800-226 from certificate and study file alone.

    What they do not say is "not stated by the certificate".
    """
    from veiltab.deploy.attest.nist_page import answers, nist_page

    _write(out, nist_page(one))
    lacking = [answer.part for _, part in answers(one) for answer in part if answer.lacks]
    said = f"Page: {out}\nNot stated, or not all of it: {', '.join(lacking)}"
    emit(as_json, _plain(one, out) | {"not_all_stated": lacking}, said)


@certificate.command(
    epilog=f"Example: veiltab certificate dsse {_INPUTS} --identity pki/curator-alice --out wages.dsse"
)
@with_certified
@identity_option
@certificate_option
def dsse(one: "Certified", out: Path, identity_folder: Path, with_certificate: bool, as_json: bool) -> None:
    """Write an in-toto Statement in a DSSE envelope, signed by one party that vouches for the certificate.

    The signatures of the parties are in the certificate, and are over other bytes: they cannot stand in the envelope.
    """
    from veiltab.common.rpc.parties.identity import utc_now
    from veiltab.deploy.attest.envelope import envelope
    from veiltab.deploy.operate.calling import identity_in

    signer = identity_in(identity_folder, one.study.id)
    _write(out, envelope(one, signer, utc_now(), with_certificate=with_certificate))
    emit(as_json, _plain(one, out) | {"signer": signer.party.uri}, f"Envelope: {out}, signed by {signer.party}")


def _write(path: Path, text: str) -> None:
    with written_whole(path) as file:
        file.write(text.encode())


def _plain(one: "Certified", out: Path) -> dict[str, object]:
    return {"out": out, "release": one.release.release_id, "study": one.study.id}
