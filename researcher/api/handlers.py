"""What can be asked over HTTP: each resource with its parameters, who may ask, and what answers."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.core.texts.csv_cells import plain_cell
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.storage.temporary import TemporaryFolder
from veiltab.researcher.api.formats import MEDIA_TYPES, RowFormat, TableFormat, codebook, table_file
from veiltab.researcher.api.resource import RESOURCES, Resource, answered, json_answer, resource_at
from veiltab.researcher.api.tokens import Scope
from veiltab.researcher.api.vocabulary import parameters_of
from veiltab.researcher.client.askable import Absent
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.table import free_name
from veiltab.researcher.questions.cost import Wish, cost_of
from veiltab.researcher.questions.sentence import parse_question
from veiltab.researcher.report.plain_data import analysis_dict, status_dict, table_dict
from veiltab.researcher.report.presentation import card_of, microdata_report, report_page

if TYPE_CHECKING:
    from veiltab.researcher.microdata.synthesis import Microdata

MOST_RELEASES = 100
"""Releases of one page."""

MOST_WAIT = 30
"""Seconds that an answer may wait for a release to be over."""

MOST_MICRODATA = 2_000_000
"""Rows of a file over HTTP; more by `veiltab researcher synthesise`."""

MOST_WEIGHTS = 20_000_000
"""Rows times replicates, likewise."""

MOST_WARNING = 4_000
"""Characters of a header that says what rows lose."""

MOST_CELLS = 100_000
"""Cells of a table over HTTP."""

SEARCH_SECONDS = 10.0
"""Longest that a plan is searched for."""

_KEPT = 16
"""Releases whose model is kept in memory."""

_CHUNK = 1 << 18
_ONE = "/v1/releases/{release}"


MOST_REPORTS = 8
"""Pages of reports that are kept: those that were asked for last."""


class Handlers:
    """Answers for one party: a researcher, or an analyst."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._releases: dict[str, Release] = {}
        self._reports: dict[str, str] = {}
        self._turn = Lock()

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Everything that can be asked."""
        own = [one for one in RESOURCES if self._client.is_owner or one.scope is not Scope.REQUEST]
        return tuple(replace(one, handle=partial(one.handle, self)) for one in own)

    @resource_at("/v1/study", "Study", is_computed=False)
    def get_study(self) -> Response:
        """Describe the study file's attributes."""
        study = self._client.study
        names = ("name", "owner", "holders")
        attributes = [
            {name: getattr(rule, name) for name in names}
            | {"categories": list(rule.attribute.categories), "is_number": bool(rule.attribute.number)}
            for rule in study.attributes
        ]
        facts = {"id": study.id, "title": study.title, "digest": study.digest, "party": str(self._client.party)}
        delta = None if study.budget_delta is None else str(study.budget_delta)
        budget = {"budget_epsilon": str(study.budget_epsilon), "budget_delta": delta}
        return json_answer(facts | budget | {"attributes": attributes})

    @resource_at("/v1/plan", "Plan", takes=parameters_of(Wish))
    def plan(self, **wished: Any) -> Response:  # noqa: ANN401 - fields of a Wish
        """Say what a release would cost, and how near to the truth it would come; `asked` is what was not given."""
        cost = cost_of(Wish(**wished), self._client.study, _within(SEARCH_SECONDS))
        numbers = {name: value for name, value in asdict(cost).items() if name not in {"asked", "errors"}}
        errors = [{"attributes": list(names), "error": error} for names, error in cost.errors]
        return json_answer({"asked": cost.asked.value, **numbers, "errors": errors})

    @resource_at("/v1/releases", "ReleaseList", is_computed=False)
    def list_releases(self, limit: int = MOST_RELEASES, after: str = "") -> Response:
        """List releases, newest first.

        Args:
            limit: of a page, 1 to 100.
            after: the id that the page before names as `next`.
        """
        if not 1 <= limit <= MOST_RELEASES:
            raise InvalidInputError(f"a page of other than 1 to {MOST_RELEASES} releases was asked for", where="limit")
        every = tuple(reversed(self._client.releases()))
        ids = [one.release_id for one in every]
        if after and after not in ids:
            raise InvalidInputError("there is no release of this id", where="after")
        first = ids.index(after) + 1 if after else 0
        page = every[first : first + limit]
        following = page[-1].release_id if first + limit < len(every) else None
        answer = json_answer({"releases": [status_dict(one) for one in page], "next": following})
        if following is not None:
            answer.headers["Link"] = f'</v1/releases?limit={limit}&after={following}>; rel="next"'
        return answer

    @resource_at("/v1/releases", "Release", scope=Scope.REQUEST, takes=parameters_of(Client.request), is_computed=False)
    def ask_for_release(self, **arguments: Any) -> Response:  # noqa: ANN401 - arguments of Client.request
        """Ask the curators for a release, or continue the unfinished one that asks for the same."""
        release = self._client.request(**arguments)
        status = release.status()
        facts = status_dict(status) | {"continued": release.continued}
        return json_answer(facts, 202, Location=f"/v1/releases/{status.release_id}")

    @resource_at(_ONE, "Release", is_computed=False)
    def get_release(self, release: str, wait: int = 0) -> Response:
        """Say how a release stands.

        Args:
            wait: seconds to wait until it is over, 0 to 30.
        """
        if not 0 <= wait <= MOST_WAIT:
            raise InvalidInputError(f"a wait of other than 0 to {MOST_WAIT} seconds was asked for", where="wait")
        return json_answer(status_dict(self._client.status(release, seconds=wait)))

    @resource_at(f"{_ONE}/table", "Table", *MEDIA_TYPES.values())
    def get_table(  # noqa: PLR0913 - one argument a choice
        self,
        release: str,
        *,
        attributes: Sequence[str] = (),
        confidence: float = CONFIDENCE,
        linkage_error: str | None = None,
        absent: Absent = Absent.LEFT_OUT,
        format: TableFormat = TableFormat.JSON,  # noqa: A002 - the word of the query
    ) -> Response:
        """Send the cells of a table, measured or from a model.

        Args:
            attributes: names from the study; all of the release if left out.
            confidence: of the intervals, between 0 and 1.
            linkage_error: wrong links to undo: their share, 0.02:0.005 with its standard deviation, 0.02:0 up to it.
            absent: people of the hub who are absent from another curator's table: left out, or shown as a category.
            format: of the answer.
        """
        source = self._release(release)
        self._check_cells(source, attributes)
        level = _confidence(confidence)
        table = source.table(attributes, confidence=level, linkage_error=linkage_error, absent=absent)
        if not isinstance(table, TableEstimate):
            raise InvalidInputError(
                "no table of the release has these attributes, and what a model says of them has no intervals",
                where="attributes",
                remedy="Ask for an analysis of them, or for fewer attributes.",
            )
        if format is TableFormat.JSON:
            return json_answer(table_dict(self._client.study, source.status(), table, source.respondents()))
        return answered(table_file(table, format, source.id), MEDIA_TYPES[format.value])

    @resource_at(f"{_ONE}/analysis", "Analysis")
    def get_analysis(
        self,
        release: str,
        question: str,
        confidence: float = CONFIDENCE,
        linkage_error: str | None = None,
        absent: Absent = Absent.LEFT_OUT,
    ) -> Response:
        """Answer a question: shares, a mean, sum, variance or quantile, totals, a model, a survival curve.

        Args:
            question: one sentence, such as "mean of hours by education", as for `veiltab researcher estimate`.
            confidence: of the intervals, between 0 and 1.
            linkage_error: wrong links to undo: their share, 0.02:0.005 with its standard deviation, 0.02:0 up to it.
            absent: people of the hub who are absent from another curator's table: left out, or shown as a category.
        """
        source = self._release(release)
        parsed = parse_question(question, source.domain(absent=absent))
        if not parsed.is_of_all_tables:
            self._check_cells(source, parsed.attributes)
        level = _confidence(confidence)
        result = source.ask(question, confidence=level, linkage_error=linkage_error, absent=absent)
        return json_answer(
            {"release": status_dict(source.status())["release"], **analysis_dict(self._client.study, result)}
        )

    @resource_at(f"{_ONE}/codebook", "Codebook")
    def get_codebook(self, release: str) -> Response:
        """Send the codes of a table in SDMX-CSV."""
        return json_answer(codebook(self._release(release).domain(absent=Absent.SHOWN)))

    @resource_at(f"{_ONE}/report", "", "text/html")
    def get_report(self, release: str) -> Response:
        """Send a page with pictures, the card and every number; it is made once, as a release does not change."""
        source = self._release(release)
        page = self._reports.pop(source.id, "") or self._page_of(source)
        self._reports[source.id] = page
        for earlier in list(self._reports)[:-MOST_REPORTS]:
            self._reports.pop(earlier, None)
        return answered(page, "text/html")

    def _page_of(self, release: Release) -> str:
        from veiltab.researcher.report.microdata_page import render  # noqa: PLC0415 - not for results in text

        status = release.status()
        if status.tables:
            return render(microdata_report(self._client.study, release.synthesise(seed="report"), card_of(status)))
        return report_page(self._client.study, status, release.estimate())

    @resource_at(
        f"{_ONE}/microdata",
        "",
        *(MEDIA_TYPES[one.value] for one in RowFormat),
        scope=Scope.MICRODATA,
        takes=parameters_of(Release.synthesise, ("progress",)),
    )
    def get_microdata(self, release: str, format: RowFormat = RowFormat.CSV, **wished: Any) -> Response:  # noqa: A002, ANN401 - arguments of synthesise
        """Send rows drawn from a model, which are not people.

        Args:
            format: of the file.
        """
        wished.setdefault("seed", secrets.token_hex(8))
        source = self._release(release)
        rows = wished.get("rows") or source.status().description().population
        copies, replicates = max(wished.get("copies", 0), 1), wished.get("replicates", 0)
        if rows * copies > MOST_MICRODATA or rows * replicates > MOST_WEIGHTS:
            raise InvalidInputError(
                f"more than {MOST_MICRODATA:,} rows or {MOST_WEIGHTS:,} weights were asked for",
                where="rows",
                remedy="Ask for fewer, or use `veiltab researcher synthesise`.",
            )
        microdata = source.synthesise(**wished)
        folder = TemporaryFolder()
        path = folder.path / f"rows.{format.value}"
        if microdata.provenance.copies:
            _write_copies(microdata, path)
        else:
            microdata.write(path)
        headers = {"Content-Type": MEDIA_TYPES[format.value], "Content-Length": str(path.stat().st_size)}
        headers |= {"Veiltab-Seed": quote(microdata.provenance.seed, safe="")}
        headers |= {"Veiltab-Warning": " ".join(microdata.provenance.sentences)[:MOST_WARNING]}
        return StreamingResponse(_pieces(path, folder), headers=headers)

    @resource_at(f"{_ONE}/certificate", "", "text/plain", scope=Scope.CERTIFICATE)
    def get_certificate(self, release: str) -> Response:
        """Send the signed certificate of a release."""
        return answered(self._release(release).certificate(), "text/plain")

    def _release(self, name: str) -> Release:
        """Return a release, which keeps its model once that is fitted."""
        release = self._client.release(name)
        with self._turn:
            entry = self._releases.setdefault(release.id, release)
            while len(self._releases) > _KEPT:
                self._releases.pop(next(iter(self._releases)))
        return entry

    def _check_cells(self, release: Release, attributes: Sequence[str]) -> None:
        """Refuse a table that is too large to be sent; of no attributes it is the only one of the release."""
        if not attributes and release.status().tables:
            return
        cells = release.domain().subset(attributes or release.domain().names).cells
        if cells > MOST_CELLS:
            raise InvalidInputError(
                f"the table has {cells:,} cells, and up to {MOST_CELLS:,} are sent", where="attributes"
            )


def _pieces(path: Path, folder: TemporaryFolder) -> Iterator[bytes]:
    """Read a file; its folder goes when nobody reads on."""
    try:
        with path.open("rb") as file:
            yield from iter(partial(file.read, _CHUNK), b"")
    finally:
        folder.delete()


def _write_copies(microdata: "Microdata", path: Path) -> None:
    """Write all copies to one file, the number of each row's copy in a column of its own."""
    import pandas as pd  # noqa: PLC0415 - not for tables

    number = free_name("copy", microdata.domain.names, ())
    copies = [microdata.frame(copy).assign(**{number: copy}) for copy in range(1, microdata.provenance.copies + 1)]
    together = pd.concat(copies, ignore_index=True)
    if path.suffix == ".parquet":
        together.to_parquet(path, index=False)
        return
    for name in together.select_dtypes(include="category"):
        together[name] = together[name].astype(str).map(plain_cell)
    together.to_csv(path, index=False, lineterminator="\n")


def _within(seconds: float) -> Callable[[], None]:
    """Return what ends a search that takes longer."""
    end = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > end:
            raise UnavailableError(
                f"the search takes more than {seconds:g} seconds", remedy="`veiltab plan` takes as long as it needs."
            )

    return check


def _confidence(value: float) -> float:
    if not 0 < value < 1:
        raise InvalidInputError("a confidence lies between 0 and 1", where="confidence")
    return value
