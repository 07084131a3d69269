"""`veiltab verify --as registry`: a release certificate as an entry of OpenDP's registry, once it is verified."""

from datetime import datetime
from pathlib import Path

import click

from veiltab.common.command.cli import emit
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import written_whole
from veiltab.deploy.registry.certified_release import NOT_STATED, read_certified
from veiltab.deploy.registry.registry_entry import PRODUCTS, SECTORS, Facts, check_out, registry_entry

_MOST = 1000


def _printable(_context: click.Context, option: click.Parameter, value: str | tuple[str, ...] | None) -> object:
    for text in (value,) if isinstance(value, str) else value or ():
        if not text.strip() or not text.isprintable() or len(text) > _MOST:
            raise InvalidInputError(
                "this is not one printable line",
                where=option.opts[0],
                remedy=f"Write 1 to {_MOST} characters in one line.",
            )
    return value


ABOUT = (
    click.option("--author", "authors", multiple=True, callback=_printable, help="Who fills in the entry; needed."),
    click.option("--name", callback=_printable, help="Of the data product; by default the study's title."),
    click.option("--curator", "curators", multiple=True, callback=_printable, help="Who publishes it; the study's."),
    click.option("--use", callback=_printable, help="What the data product is for."),
    click.option("--region", callback=_printable, help="That it is about, or whose law applies."),
    click.option("--product", type=click.Choice(PRODUCTS), default=PRODUCTS[0], help=", ".join(PRODUCTS)),
    click.option("--sector", type=click.Choice(SECTORS), help=", ".join(SECTORS)),
    click.option("--published", type=click.DateTime(["%Y-%m-%d"]), help="Day; that of the last signature by default."),
)
"""What an entry says that no certificate does, as options."""


def write_entry(  # noqa: PLR0913 - what the registry asks
    file: Path,
    study_path: Path,
    authority: Path,
    revoked: Path | None,
    out: Path,
    *,
    authors: tuple[str, ...],
    name: str | None,
    curators: tuple[str, ...],
    use: str | None,
    region: str | None,
    product: str,
    sector: str | None,
    published: datetime | None,
) -> None:
    """Write an entry of a release whose certificate holds, and say what is to complete; see the options of `verify`."""
    if not authors:
        raise InvalidInputError(
            "nobody fills in the entry", where="--about author", remedy='Such as author="Ana Diaz".'
        )
    check_out(out)
    certified = read_certified(file, study_path, authority, revoked)
    facts = Facts(
        authors=authors,
        name=name or certified.study.title,
        curators=curators or tuple(member.name for member in certified.study.curators),
        use=use or NOT_STATED,
        region=region or NOT_STATED,
        product=product,
        sector=sector,
        published=f"{published or certified.last_signed:%Y-%m-%d}",
    )
    with written_whole(out) as draft:
        draft.write(registry_entry(certified, facts).encode())
    missing = [key for key, value in (("use", use), ("region", region), ("sector", sector)) if value is None]
    later = f"\nTo complete: {', '.join(missing)}" if missing else ""
    data = {"out": out, "release": certified.release.release_id, "study": certified.study.id, "to_complete": missing}
    emit(data, f"Draft: {out}{later}")
