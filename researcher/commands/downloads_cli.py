"""`veiltab researcher synthesise` and `report`: microdata, pages and certificates of a release."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit, listed, note
from veiltab.common.command.new_files import NEW_FILE, force_option, refuse_present
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import write_whole
from veiltab.researcher.commands.linkage_options import Linkage, linkage_option
from veiltab.researcher.commands.options_cli import confidence_option, release_option, with_client

if TYPE_CHECKING:
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.client.release import Release


@click.command(
    epilog="Example: veiltab researcher synthesise study.toml --identity pki/researcher-rosa"
    " --release linked --rows 400000 --seed census --out linked.parquet"
)
@with_client
@release_option
@click.option("--attributes", help="Only these attributes, separated by commas; by default all that were asked for.")
@click.option(
    "--rows", type=int, help="Rows; by default as many as there are respondents. For intervals, take ten times that."
)
@click.option(
    "--replicates",
    type=int,
    help="Columns of weights for intervals, 20 by default: the release is played again so often. 0 for none.",
)
@click.option("--copies", type=int, help="Instead of weights, so many files, for mitools and its like; an even number.")
@click.option("--seed", help="The same seed gives the same rows; by default a random one, which is printed.")
@linkage_option
@click.option(
    "--out", required=True, type=NEW_FILE, help="File to write (.parquet or .csv); copies get numbers, -1, -2, ..."
)
@click.option("--report", "page", type=NEW_FILE, help="Also write an HTML page about the file.")
@force_option
def synthesise(
    client: "Client",
    release_name: str,
    attributes: str | None,
    rows: int | None,
    replicates: int | None,
    copies: int | None,
    seed: str | None,
    linkage: Linkage,
    out: Path,
    page: Path | None,
) -> None:
    """Write microdata: rows drawn from a model of all tables of a release, which are not people.

    The rows are the best estimate. Columns of weights say how far they may be from the truth: R's survey, Stata and SAS
    read them by the line that the file brings, and veiltab.with_replicates in Python. Where the rows come from stands
    in the file (Parquet: pandas reads it as attrs) or beside it (CSV: a .json of the same name).
    """
    from veiltab.common.web.document import write_page
    from veiltab.researcher.microdata.files import check_microdata_path, written_paths
    from veiltab.researcher.microdata.synthesis import DEFAULT_REPLICATES

    if copies is not None and replicates is not None:
        raise InvalidInputError(
            "both replicates and copies were asked for",
            where="--copies",
            remedy="Give --replicates for one file with weights, or --copies for files without.",
        )
    check_microdata_path(out)
    for path in written_paths(out, copies or 0):
        refuse_present(path)
    release = client.release(release_name)
    note("a model of all tables is fitted")
    microdata = release.synthesise(
        rows=rows,
        replicates=DEFAULT_REPLICATES if replicates is None and not copies else replicates or 0,
        copies=copies or 0,
        seed=seed,
        attributes=listed(attributes) if attributes else None,
        linkage_error=linkage,
        progress=lambda done, whole: (
            None if done % 5 and done > 2 else note(f"the release was played again: {done} of {whole}")
        ),
    )
    note("rows are weighted and written")
    files = microdata.write(out)
    if page is not None:
        from veiltab.researcher.report.microdata_page import render
        from veiltab.researcher.report.presentation import card_of, microdata_report

        write_page(render(microdata_report(client.study, microdata, card_of(release.status()))), page)
    origin = microdata.provenance
    data = {
        "release": release.id,
        "files": files,
        **same_fields(origin, ("rows", "replicates", "copies", "seed", "model", "graph")),
        "report": page,
        "lost": origin.coarse,
    }
    lines = [
        *(f"Written: {file}" for file in files),
        f"{origin.rows:,} rows{' a file' if origin.copies else ''}, model: {origin.model}; seed {origin.seed}",
        *(
            [f"Weights of {origin.replicates} replicates, for intervals"]
            if origin.replicates and not origin.copies
            else []
        ),
        *origin.sentences,
        *([] if page is None else [f"Report: {page}"]),
    ]
    emit(data, "\n".join(lines))


@click.command(
    epilog="Example: veiltab researcher report study.toml --identity pki/researcher-rosa"
    " --release wages --out wages.html\n\n"
    "The certificate: --out wages.certificate"
)
@with_client
@release_option
@confidence_option
@click.option("--out", required=True, type=NEW_FILE, help="File to write: NAME.html, or NAME.certificate.")
@force_option
def report(client: "Client", release_name: str, confidence: float, out: Path) -> None:
    """Write one self-contained HTML page with pictures, the epsilon card and every number; or the release certificate.

    Of a release of several tables the page is about microdata of as many rows as there are respondents, with the seed
    "report"; `veiltab researcher synthesise --report` writes the page that goes with a file of your own.

    A certificate has the description, the receipts and the ledgers, signed by every curator and the server, for all
    tables of a release, and says that none is missing. `veiltab verify` checks it offline with the study file. It holds
    the counts of the tests: keep it from analysts, who may not ask for it.
    """
    if out.suffix not in {".html", ".certificate"}:
        raise InvalidInputError(
            "this is neither a page nor a certificate", where=str(out), remedy="Write NAME.html or NAME.certificate."
        )
    release = client.release(release_name)
    if out.suffix == ".html":
        _write_page(client, release, confidence, out)
        emit({"release": release.id, "report": out}, f"Report: {out}")
        return
    write_whole(out, release.certificate().encode())
    emit({"release": release.id, "certificate": out}, f"Certificate: {out}")


def _write_page(client: "Client", release: "Release", confidence: float, out: Path) -> None:
    from veiltab.common.web.document import write_page
    from veiltab.researcher.report.microdata_page import render
    from veiltab.researcher.report.presentation import card_of, microdata_report, report_page

    status = release.status()
    if status.tables:
        note(f"a model of {len(status.tables)} tables is fitted")
        microdata = release.synthesise(seed="report")
        note("the release is played again, to see how far from the truth the rows are")
        html = render(microdata_report(client.study, microdata, card_of(status)))
    else:
        html = report_page(client.study, status, release.estimate(confidence=confidence))
    write_page(html, out)
