"""The tables of a release that is ready, as what is asked takes them: estimated, pooled, modelled.

An estimate is of the people whom every curator of its table has. One that is pooled of several tables, or a model, is
of those whom every curator has who has an attribute in all of them.
"""

from collections.abc import Sequence

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.common.study.missing import joined
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.client.askable import Linkage, is_shown, weighting
from veiltab.researcher.client.connection import Connection
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.estimates.people_present import among_present, spokes_of
from veiltab.researcher.estimates.pooling import pooled
from veiltab.researcher.estimates.table_result import TableResult, fitted, table_result
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.status.release_status import Status, TableStatus

_MOST_MODELS = 4  # that are kept, for one share of wrong links each


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTables:
    """The tables of one release.

    Args:
        client: fetches the counts.
        status: of the release, under the client's study file.
        models: of all tables, by the wrong links that they undo; they are kept here.
    """

    client: Connection
    status: Status
    models: dict[str, tuple[Model, tuple[str, ...]]]

    @property
    def study(self) -> Study:
        """The study file of the release."""
        return self.client.study

    def results(
        self, tables: Sequence[TableStatus] | None = None, linkage_error: Linkage = None
    ) -> tuple[TableResult, ...]:
        """Return tables as they were measured, all that are ready unless some are given."""
        tables = self.status.ready_tables if tables is None else tables
        histograms = [self.status.counts or self.client.histogram(table.release_id) for table in tables]
        results = tuple(
            table_result(table.number, table.attributes, self.status.spec_of(table), histogram)
            for table, histogram in zip(tables, histograms, strict=True)
        )
        if linkage_error is None:
            return results
        from veiltab.researcher.linkage_errors.asking import results_with_links  # noqa: PLC0415 - not for studies with ids

        return results_with_links(results, linkage_error, self.study)

    def measured(
        self, about: Sequence[str], confidence: float, linkage_error: Linkage, absent: str
    ) -> tuple[TableEstimate, ...]:
        """Return each set of attributes that was measured; see Release.measured."""
        runs: dict[tuple[str, ...], list[Estimate]] = {}
        for result in self.results(self._having(weighting(linkage_error)), None):
            runs.setdefault(tuple(result.names), []).append(self._estimate(result, confidence))
        parts: dict[tuple[str, ...], Sequence[str]] = {names: names for names in runs}
        if about and len(runs) > 1 and not is_shown(absent):
            spokes = self._spokes(about)
            parts = {
                names: [name for name in names if self._spokes([name]) <= spokes]
                for names in runs
                if spokes <= self._spokes(names)
            }
            if lacking := [name for name in about if not any(name in part for part in parts.values())]:
                raise InvalidInputError(
                    f"no table has {joined(lacking)} and attributes of {joined(sorted(spokes))}, which say who is"
                    " absent",
                    where=f"release {self.status.release_id}",
                    remedy=f"Ask for a release with a table of {joined(about)}.",
                )
        return tuple(
            self.present(pooled(runs[names], part), linkage_error, absent) for names, part in parts.items() if part
        )

    def only(self, confidence: float) -> Estimate:
        """Return the only table of a release, with the people who are absent."""
        if self.status.tables:
            raise InvalidInputError(
                f"this is a release of {len(self.status.tables)} tables",
                where=f"release {self.status.release_id}",
                remedy="Name the attributes of one in the question, or in Python release.table([...]).",
            )
        (result,) = self.results()
        return self._estimate(result, confidence)

    def estimate(
        self, attributes: Sequence[str], confidence: float, linkage_error: Linkage, absent: str
    ) -> TableEstimate:
        """Return the table of some attributes, pooled of all tables that have them."""
        by = [name for name in weighting(linkage_error) if name not in attributes]
        having = self._having([*self.study.domain(attributes).names, *by])
        if not is_shown(absent):
            named = self._spokes([*attributes, *by])
            others = [name for name in having[0].attributes if self._spokes([name]) - named]
            by += [name for name in others if all(name in table.attributes for table in having)]
        estimates = [self._estimate(one, confidence) for one in self.results(having)]
        estimate_of_people = self.present(pooled(estimates, [*attributes, *by]), linkage_error, absent)
        return estimate_of_people.marginal(attributes) if by else estimate_of_people

    def table(self, attributes: Sequence[str], confidence: float, linkage_error: Linkage, absent: str) -> Table:
        """Return the table of some attributes, measured or from a model; see Release.table."""
        if weighting(linkage_error) or not self.status.needs_model(self.study.domain(attributes).names):
            return self.estimate(attributes, confidence, linkage_error, absent)
        if (links := repr(linkage_error)) not in self.models:  # once for all tables
            for earlier in [*self.models][: 1 - _MOST_MODELS]:
                del self.models[earlier]
            results = self.results(None, linkage_error)
            domain = self.study.domain({name for result in results for name in result.names})
            all_remarks = tuple(dict.fromkeys(remark for one in results for remark in one.remarks))
            self.models[links] = (fitted(domain, results), all_remarks)
        model, remarks = self.models[links]
        modelled = ModelledTable(
            domain=model.domain.subset(attributes),
            raw=model.marginal(attributes),
            population=self.status.spec_of(self.status.ready_tables[0]).population,
            confidence=confidence,
            study_digest=self.status.study_digest,
            remarks=remarks,
        )
        return modelled if is_shown(absent) else modelled.among_present(self.study)

    def _spokes(self, names: Sequence[str]) -> set[str]:
        """Return from whose tables people of the hub may be absent, of who has some attributes."""
        return set(spokes_of(self.study.domain(names), self.study))

    def present(self, estimate: TableEstimate, linkage_error: Linkage, absent: str) -> TableEstimate:
        """Return a table of the people who are present, unless "absent" is shown, with its wrong links undone."""
        is_of_present = not is_shown(absent)
        table = among_present(estimate, self.study) if is_of_present else estimate
        if linkage_error is None:
            return table
        if not is_of_present and self._spokes(estimate.domain.names):
            raise InvalidInputError(
                "wrong links are undone among the people who have one",
                where="linkage error",
                remedy='Leave out absent="shown", or the linkage error.',
            )
        from veiltab.researcher.linkage_errors.asking import table_with_links  # noqa: PLC0415 - not for studies with ids

        return table_with_links(table, linkage_error, self.study)

    def _estimate(self, result: TableResult, confidence: float) -> Estimate:
        return Estimate(
            domain=self.study.domain(result.names),
            design=result.design,
            counts=result.counts,
            confidence=confidence,
            study_digest=self.status.study_digest,
        )

    def _having(self, attributes: Sequence[str]) -> tuple[TableStatus, ...]:
        """Return the tables that are ready and have some attributes."""
        status = self.status
        present = status.measured_attributes
        missing = [name for name in attributes if name not in present]
        if missing:
            raise InvalidInputError(
                f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in the release",
                where=f"release {status.release_id}",
                remedy=f"It has {', '.join(present)}.",
            )
        having = tuple(one for one in status.ready_tables if set(one.attributes).issuperset(attributes))
        if not having:
            raise InvalidInputError(
                f"no table of the release has all of {', '.join(attributes)}",
                where=f"release {status.release_id}",
                remedy="Ask for a table of them, or estimate it from the model of the release.",
            )
        return having
