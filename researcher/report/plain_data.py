"""Releases, tables and analyses as plain data: what commands print with --json, and programs get over HTTP."""

from functools import lru_cache
from typing import TYPE_CHECKING

from veiltab.common.core.texts.record_fields import same_fields
from veiltab.researcher.drawing.drawable import is_covered

if TYPE_CHECKING:
    from veiltab.common.release.table_spec import TableSpec
    from veiltab.common.study.file import Study
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.status.release_status import Status


@lru_cache(maxsize=64)
def foreseen_errors(table: "TableSpec") -> dict[str, float | None]:
    """Return the expected error of a table, all cells together, and that of simple random sampling at its epsilon."""
    from veiltab.common.privacy.planning.planning import Plan, plan_release  # noqa: PLC0415 - not for certificates

    scheme, epsilon, delta = table.description.scheme, table.epsilon, table.delta
    own = Plan(scheme=scheme, mechanism=table.mechanism, epsilon=epsilon, delta=delta).root_mse()
    if scheme.is_simple_random:
        return {"root_mse": own, "root_mse_of_wor": own}
    wor = plan_release(population=table.population, cells=table.cells, epsilon=epsilon, delta=delta)
    return {"root_mse": own, "root_mse_of_wor": wor.root_mse()}


def _spec_dict(spec: "TableSpec") -> dict[str, object]:
    from veiltab.common.release.guarantees import guaranteed_epsilon, release_facts  # noqa: PLC0415 - not for tables

    return {**release_facts(spec), **foreseen_errors(spec), "guaranteed_epsilon": guaranteed_epsilon(spec)}


def status_dict(status: "Status") -> dict[str, object]:
    """Return a status as plain data for JSON."""
    spec = None if status.spec is None else status.spec.only_table
    return {
        "release": {
            "id": status.release_id,
            "label": status.label,
            "state": status.state.value,
            "attributes": list(status.attributes),
            "epsilon": status.epsilon,
            "study_digest": status.study_digest,
            **({} if spec is None else _spec_dict(spec)),
        },
        "granted": list(status.granted),
        "tables": [
            {
                "number": table.number,
                "phase": table.phase,
                "id": table.release_id,
                "state": table.state.value,
                "attributes": list(table.attributes),
            }
            for table in status.tables
        ],
        "receipts": [receipt.facts() for receipt in status.receipts],
        "failure": status.failure,
        "parties": {
            party: {"state": state.value, "waiting_for": status.waits.get(party, "")}
            for party, (state, _) in status.parties.items()
        },
        "seconds": status.seconds,
        "bytes": status.bytes,
    }


def table_dict(study: "Study", status: "Status", estimate: "TableEstimate", respondents: str) -> dict[str, object]:
    """Return the cells of a table.

    Args:
        respondents: whom n counts.
    """
    from veiltab.researcher.estimates.table import to_records  # noqa: PLC0415 - not for status and requests

    return {
        "release": status_dict(status)["release"],
        "study": study.title,
        "attributes": list(estimate.domain.names),
        "study_digest": estimate.study_digest,
        "codebook": estimate.domain.codebook,
        "confidence": estimate.confidence,
        "covered": is_covered(estimate.remarks),
        "rows": to_records(estimate),
        "root_mse": estimate.root_mse,
        "few_rows": estimate.has_few_rows,
        "respondents": respondents,
        "remarks": list(estimate.remarks),
        **({"links": list(links)} if (links := remarks_on_links(estimate)) else {}),
    }


def remarks_on_links(estimate: "TableEstimate") -> tuple[str, ...]:
    """Return what was corrected in a table, and whether links and not noise limit it; nothing if nothing was."""
    if estimate.terms is not None:
        return ()
    from veiltab.researcher.linkage_errors.hull import limited, uncorrected  # noqa: PLC0415 - not for studies with ids

    plain = uncorrected(estimate)
    return (*estimate.remarks, *limited(estimate.high - estimate.low, plain.high - plain.low))


def analysis_dict(study: "Study", analysis: "Analysis") -> dict[str, object]:
    """Return an analysis."""
    return {
        "study": study.title,
        **same_fields(analysis, ("title", "confidence", "study_digest", "along")),
        "unit": analysis.unit.value,
        "covered": is_covered(analysis.remarks),
        "measured": analysis.is_measured,
        "rows": analysis.records(),
        "facts": dict(analysis.facts),
        "remarks": list(analysis.remarks),
    }
