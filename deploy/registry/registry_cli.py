"""`veiltab certificate registry`: a release certificate as an entry of OpenDP's registry, once it is verified."""

from datetime import datetime
from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import written_whole
from veiltab.deploy.registry.certified_release import NOT_STATED, read_certified
from veiltab.deploy.registry.registry_entry import PRODUCTS, SECTORS, Facts, check_out, registry_entry

_MOST = 1000
_EXAMPLE = (
    "Example: veiltab certificate registry wages.certificate --study study.toml --authority ca.pem --out wages.yaml"
    f' --author "Ana Diaz" --region Denmark --use "Wages by education, for a report"\n\n{EXIT_CODES}'
)


def _printable(_context: click.Context, option: click.Parameter, value: str | tuple[str, ...] | None) -> object:
    for text in (value,) if isinstance(value, str) else value or ():
        if not text.strip() or not text.isprintable() or len(text) > _MOST:
            raise InvalidInputError(
                "this is not one printable line",
                where=option.opts[0],
                remedy=f"Write 1 to {_MOST} characters in one line.",
            )
    return value


@click.group(epilog=_EXAMPLE)
def certificate() -> None:
    """Publish what a release certificate says."""


@certificate.command(epilog=_EXAMPLE)
@click.argument("file", type=PATH, metavar="FILE")
@click.option("--study", "study_path", required=True, type=PATH, help="The study file that it must be of.")
@click.option(
    "--authority", required=True, type=PATH, help="Certificate of the study's authority, had from elsewhere (ca.pem)."
)
@click.option("--revoked", type=PATH, help="The authority's revocation list (crl.pem): nobody on it may have signed.")
@click.option("--out", required=True, type=PATH, help="Where to write; it must not be there yet.")
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
    file: Path,
    study_path: Path,
    authority: Path,
    revoked: Path | None,
    out: Path,
    authors: tuple[str, ...],
    name: str | None,
    curators: tuple[str, ...],
    use: str | None,
    region: str | None,
    product: str,
    sector: str | None,
    published: datetime | None,
) -> None:
    """Write a draft for OpenDP's registry of deployments of differential privacy, in YAML.

    The command verifies the certificate first, as `veiltab verify` does, and writes nothing if a line does not hold.
    Region, use and sector are not in the certificate: give them, or complete the draft. Then propose it at
    github.com/opendp/deployments-registry-data.
    """
    check_out(out)
    one = read_certified(file, study_path, authority, revoked)
    facts = Facts(
        authors=authors,
        name=name or one.study.title,
        curators=curators or tuple(member.name for member in one.study.curators),
        use=use or NOT_STATED,
        region=region or NOT_STATED,
        product=product,
        sector=sector,
        published=f"{published or one.last_signed:%Y-%m-%d}",
    )
    with written_whole(out) as written:
        written.write(registry_entry(one, facts).encode())
    missing = [f"--{key}" for key, value in (("use", use), ("region", region), ("sector", sector)) if value is None]
    later = f"\nTo complete: {', '.join(missing)}" if missing else ""
    data = {"out": out, "release": one.release.release_id, "study": one.study.id, "to_complete": missing}
    emit(data, f"Draft: {out}{later}")
