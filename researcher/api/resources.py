"""What can be asked over HTTP: each resource with its parameters, who may ask, and what answers."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.researcher.api.formats import FORMATS, codebook, table_file
from veiltab.researcher.api.resource import Answer, Resource, json_answer, optional
from veiltab.researcher.api.tokens import Scope
from veiltab.researcher.api.vocabulary import parameters_of
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.table import free_name, plain_cell
from veiltab.researcher.microdata.provenance import WARNING
from veiltab.researcher.questions.cost import Wish, cost_of
from veiltab.researcher.questions.question import Question, answer, answer_of_all
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

MOST_CELLS = 100_000
"""Cells of a table over HTTP."""

SEARCH_SECONDS = 10.0
"""Longest that a plan is searched for."""

_KEPT = 16
"""Releases whose model is kept in memory."""


_ATTRIBUTES = optional(
    "attributes", tuple[str, ...], "names from the study; those that the question names if left out."
)
_CONFIDENCE = optional("confidence", float, "of the intervals, between 0 and 1.", CONFIDENCE)
_LINKS = optional(
    "linkage_error", str, "wrong links to undo: their share, 0.02:0.005 with its standard deviation, 0.02:0 up to it."
)
_FORMAT = optional("format", str, f"of the answer: {', '.join(FORMATS)}.", "json")


class Desk:
    """Answers for one party: a researcher, or an analyst."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._releases: dict[str, Release] = {}
        self._turn = Lock()

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Everything that can be asked."""
        one = "/v1/releases/{release}"
        read = partial(Resource, method="GET", scope=Scope.READ)
        made = parameters_of(Release.synthesise, ("progress",))
        asking = Resource(
            name="askForRelease",
            method="POST",
            path="/v1/releases",
            scope=Scope.REQUEST,
            summary="Ask the curators for a release, or continue the unfinished one that asks for the same.",
            parameters=parameters_of(Client.request),
            schema="Release",
            is_computed=False,
            handle=self.request,
            status=202,
        )
        return (
            read(
                name="getStudy",
                path="/v1/study",
                summary="The study file's attributes.",
                schema="Study",
                is_computed=False,
                handle=self.study,
            ),
            read(
                name="plan",
                path="/v1/plan",
                summary="What a release would cost, and how near to the truth it would"
                " come; `asked` is computed from the others.",
                parameters=parameters_of(Wish),
                schema="Plan",
                handle=self.plan,
            ),
            read(
                name="listReleases",
                path="/v1/releases",
                summary="Releases, newest first.",
                parameters=(
                    optional("limit", int, f"of a page, 1 to {MOST_RELEASES}.", MOST_RELEASES),
                    optional("after", str, "the id that the page before names as `next`."),
                ),
                schema="ReleaseList",
                is_computed=False,
                handle=self.releases,
            ),
            *((asking,) if self._client.is_owner else ()),
            read(
                name="getRelease",
                path=one,
                summary="How a release stands.",
                parameters=(optional("wait", int, f"seconds to wait until it is over, 0 to {MOST_WAIT}.", 0),),
                schema="Release",
                is_computed=False,
                handle=self.release,
            ),
            read(
                name="getTable",
                path=f"{one}/table",
                summary="The cells of a table, measured or from a model.",
                parameters=(_ATTRIBUTES, _CONFIDENCE, _LINKS, _FORMAT),
                media_types=tuple(FORMATS.values()),
                schema="Table",
                handle=self.table,
            ),
            read(
                name="getAnalysis",
                path=f"{one}/analysis",
                summary="An analysis: shares, a mean, sum, variance or quantile, totals, a model, a survival curve.",
                parameters=(_ATTRIBUTES, *parameters_of(Question), _CONFIDENCE, _LINKS),
                schema="Analysis",
                handle=self.analysis,
            ),
            read(
                name="getCodebook",
                path=f"{one}/codebook",
                summary="The codes of a table in SDMX-CSV.",
                schema="Codebook",
                handle=self.codebook,
            ),
            read(
                name="getReport",
                path=f"{one}/report",
                summary="A page with pictures, the card and every number.",
                media_types=("text/html",),
                handle=self.report,
            ),
            Resource(
                name="getMicrodata",
                method="GET",
                path=f"{one}/microdata",
                scope=Scope.MICRODATA,
                summary="Rows drawn from a model, which are no people.",
                parameters=(*made, optional("format", str, "of the file: csv or parquet.", "csv")),
                media_types=("text/csv", FORMATS["parquet"]),
                handle=self.microdata,
            ),
            Resource(
                name="getCertificate",
                method="GET",
                path=f"{one}/certificate",
                scope=Scope.CERTIFICATE,
                summary="The signed certificate of a release.",
                media_types=("text/plain",),
                handle=self.certificate,
            ),
        )

    def study(self) -> Answer:
        """Answer with the attributes of the study file."""
        study = self._client.study
        return json_answer(
            {
                "id": study.id,
                "title": study.title,
                "digest": study.digest,
                "party": str(self._client.party),
                "budget_epsilon": str(study.budget_epsilon),
                "budget_delta": None if study.budget_delta is None else str(study.budget_delta),
                "attributes": [
                    {
                        "name": rule.name,
                        "owner": rule.owner,
                        "categories": list(rule.attribute.categories),
                        "is_number": bool(rule.attribute.number),
                    }
                    for rule in study.attributes
                ],
            }
        )

    def plan(self, **wished: Any) -> Answer:  # noqa: ANN401 - fields of a Wish
        """Answer with what a release would cost."""
        cost = cost_of(Wish(**wished), self._client.study, _within(SEARCH_SECONDS))
        numbers = {name: value for name, value in asdict(cost).items() if name not in {"asked", "errors"}}
        errors = [{"attributes": list(names), "error": error} for names, error in cost.errors]
        return json_answer({"asked": cost.asked.value, **numbers, "errors": errors})

    def releases(self, limit: int = MOST_RELEASES, after: str = "") -> Answer:
        """Answer with a page of releases."""
        if not 1 <= limit <= MOST_RELEASES:
            raise InvalidInputError(f"a page has 1 to {MOST_RELEASES} releases", where="limit")
        every = tuple(reversed(self._client.releases()))
        ids = [one.release_id for one in every]
        if after and after not in ids:
            raise InvalidInputError("there is no release of this id", where="after")
        first = ids.index(after) + 1 if after else 0
        page = every[first : first + limit]
        following = page[-1].release_id if first + limit < len(every) else None
        link = {} if following is None else {"Link": f'</v1/releases?limit={limit}&after={following}>; rel="next"'}
        return json_answer({"releases": [status_dict(one) for one in page], "next": following}, headers=link)

    def request(self, **asked: Any) -> Answer:  # noqa: ANN401 - arguments of Client.request
        """Ask for a release."""
        release = self._client.request(**asked)
        status = release.status()
        place = {"Location": f"/v1/releases/{status.release_id}"}
        return json_answer(status_dict(status) | {"continued": release.continued}, 202, place)

    def release(self, release: str, wait: int = 0) -> Answer:
        """Answer with how a release stands."""
        if not 0 <= wait <= MOST_WAIT:
            raise InvalidInputError(f"an answer waits 0 to {MOST_WAIT} seconds", where="wait")
        return json_answer(status_dict(self._client.status(release, seconds=wait)))

    def table(
        self,
        release: str,
        attributes: Sequence[str] = (),
        confidence: float = CONFIDENCE,
        linkage_error: str | None = None,
        format: str = "json",  # noqa: A002 - the word of the query
    ) -> Answer:
        """Answer with the cells of a table."""
        if format not in FORMATS:
            raise InvalidInputError(f"there is no format {format[:20]!r}", where="format", remedy=", ".join(FORMATS))
        known, found = self._table(release, attributes, confidence, linkage_error)
        if not isinstance(found, TableEstimate):
            raise InvalidInputError(
                "no table of the release has these attributes, and what a model says of them has no intervals",
                where="attributes",
                remedy="Ask for an analysis of them, or for fewer attributes.",
            )
        if format == "json":
            return json_answer(table_dict(self._client.study, known.status(), found, known.respondents()))
        return Answer(body=table_file(found, format, known.id), media_type=FORMATS[format])

    def analysis(
        self,
        release: str,
        attributes: Sequence[str] = (),
        confidence: float = CONFIDENCE,
        linkage_error: str | None = None,
        **asked: Any,  # noqa: ANN401 - fields of a Question
    ) -> Answer:
        """Answer a question."""
        question, known = Question(**asked), self._release(release)
        if question.is_of_all_tables:
            tables = known.measured(confidence=_confidence(confidence), linkage_error=linkage_error)
            found = answer_of_all(tables, question)
        else:
            named = attributes or (question.attributes(known.domain()) if question.names_attributes else ())
            found = answer(question, self._table(release, named, confidence, linkage_error)[1])
        return json_answer(
            {"release": status_dict(known.status())["release"], **analysis_dict(self._client.study, found)}
        )

    def codebook(self, release: str) -> Answer:
        """Answer with the codes of SDMX-CSV."""
        return json_answer(codebook(self._release(release).domain()))

    def report(self, release: str) -> Answer:
        """Answer with a page."""
        from veiltab.researcher.report.microdata_page import render  # noqa: PLC0415 - not for results in text

        known = self._release(release)
        status = known.status()
        if status.tables:
            made = known.synthesise(seed="report")
            html = render(microdata_report(self._client.study, made, card_of(status)))
        else:
            html = report_page(self._client.study, status, known.estimate())
        return Answer(body=html.encode(), media_type="text/html")

    def microdata(self, release: str, format: str = "csv", **wished: Any) -> Answer:  # noqa: A002, ANN401 - arguments of synthesise
        """Answer with a file of rows."""
        from veiltab.common.storage.temporary import TemporaryFolder  # noqa: PLC0415 - not for tables

        if format not in {"csv", "parquet"}:
            raise InvalidInputError("microdata are csv or parquet", where="format")
        wished.setdefault("seed", secrets.token_hex(8))
        known = self._release(release)
        rows = wished.get("rows") or known.status().description().population
        copies, replicates = max(wished.get("copies", 0), 1), wished.get("replicates", 0)
        if rows * copies > MOST_MICRODATA or rows * replicates > MOST_WEIGHTS:
            raise InvalidInputError(
                f"at most {MOST_MICRODATA:,} rows and {MOST_WEIGHTS:,} weights are sent",
                where="rows",
                remedy="Ask for fewer, or use `veiltab researcher synthesise`.",
            )
        made = known.synthesise(**wished)
        folder = TemporaryFolder()
        path = folder.path / f"rows.{format}"
        try:
            if made.provenance.copies:
                _write_copies(made, path)
            else:
                made.write(path)
        except BaseException:
            folder.delete()
            raise
        media_type = FORMATS["parquet"] if format == "parquet" else "text/csv"
        said = {"Veiltab-Seed": quote(made.provenance.seed, safe=""), "Veiltab-Warning": WARNING}
        return Answer(body=path, media_type=media_type, headers=said, after=folder.delete)

    def certificate(self, release: str) -> Answer:
        """Answer with the certificate of a release."""
        return Answer(body=self._release(release).certificate().encode(), media_type="text/plain")

    def _release(self, name: str) -> Release:
        """Return a release, which keeps its model once that is fitted."""
        found = self._client.release(name)
        with self._turn:
            kept = self._releases.setdefault(found.id, found)
            while len(self._releases) > _KEPT:
                self._releases.pop(next(iter(self._releases)))
        return kept

    def _table(
        self, release: str, attributes: Sequence[str], confidence: float, linkage_error: str | None
    ) -> tuple[Release, Any]:
        known, level = self._release(release), _confidence(confidence)
        domain = known.domain().subset(attributes) if attributes else known.domain()
        is_only = not attributes and not known.status().tables
        if (attributes or is_only) and domain.cells > MOST_CELLS:
            raise InvalidInputError(
                f"the table has {domain.cells:,} cells, and up to {MOST_CELLS:,} are sent", where="attributes"
            )
        if attributes:
            return known, known.table(domain.names, confidence=level, linkage_error=linkage_error)
        return known, known.estimate(None, confidence=level, linkage_error=linkage_error)


def _write_copies(made: "Microdata", path: Path) -> None:
    """Write all copies to one file, the number of each row's copy in a column of its own."""
    import pandas as pd  # noqa: PLC0415 - not for tables

    number = free_name("copy", made.domain.names, ())
    copies = [made.frame(copy).assign(**{number: copy}) for copy in range(1, made.provenance.copies + 1)]
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
