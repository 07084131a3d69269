"""Makes a report of a release's status and estimate."""

import hashlib
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import EpsilonCard
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.release.guarantees import epsilon_card, guaranteed_epsilon, release_card
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.schemes import scheme_class
from veiltab.common.study.file import Study
from veiltab.common.study.missing import presence_sentence, respondents_sentence
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.microdata.expectation import expected_error
from veiltab.researcher.microdata.synthesis import Microdata
from veiltab.researcher.model.row_drawing import Rows
from veiltab.researcher.report.microdata_page import MicrodataReport
from veiltab.researcher.report.report import ReportInput, render
from veiltab.researcher.status.release_status import Status


def report_page(study: Study, status: Status, estimate: TableEstimate, truth: NDArray[np.float64] | None = None) -> str:
    """Return the HTML report of a release that is ready.

    Raises:
        FailedReleaseError: it has no result.
    """
    (table,) = status.all_tables
    spec = status.spec_of(table)
    return render(
        ReportInput(
            title=f"{study.title}: {', '.join(estimate.domain.names)}",
            release_id=status.release_id,
            estimate=estimate,
            owners=tuple((rule.name, rule.held_by) for rule in study.attributes if rule.name in estimate.domain.names),
            epsilon=_epsilon(spec),
            scheme=f"{scheme_class(spec.scheme).title}, {_sampling(spec.sampling)}",
            pad=_pad(spec.pad),
            respondents=respondents_sentence(study, estimate.domain.names, status.left_out),
            presence=presence_sentence(study),
            dates=_dates(),
            card=epsilon_card(spec).bounds,
            receipts=status.receipts,
            truth=truth,
        )
    )


def microdata_report(
    study: Study, microdata: Microdata, card: EpsilonCard, truth: Rows | None = None
) -> MicrodataReport:
    """Return what there is to say of the microdata of a release; some seconds of work.

    Args:
        study: under which it was asked for.
        microdata: of two or more attributes.
        truth: the true rows where they are known (a demonstration), or None.

    Raises:
        InvalidInputError: microdata of a single attribute.
    """
    domain, model = microdata.domain, microdata.model
    if len(domain.names) < 2:
        raise InvalidInputError("a report of microdata was asked for with one attribute")
    rows = microdata.rows()
    return MicrodataReport(
        title=f"{study.title}: microdata",
        domain=domain,
        owners={rule.name: rule.held_by for rule in study.attributes if rule.name in domain.names},
        provenance=microdata.provenance,
        model=model,
        rows=rows,
        tables=microdata.tables,
        expected=expected_error(microdata.tables, model, rows, hashlib.sha256(b"expected error").digest()),
        card=card.bounds,
        presence=presence_sentence(study),
        dates=_dates(),
        truth=truth,
    )


def card_of(status: Status) -> EpsilonCard:
    """Return who faces which epsilon of a release; of several tables, some seconds of work.

    Raises:
        FailedReleaseError: it has no result.
    """
    return release_card(status.description())


def _dates() -> tuple[tuple[str, str], ...]:
    """Return what happened when."""
    return (("report written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),)


def _sampling(sampling: Sampling) -> str:
    match sampling:
        case Sampling.SEED:
            return "from a seed that the curators tossed"
        case Sampling.INDICES:
            return "from row indices that one curator drew and shared"
        case Sampling.SERVER:
            return "by the server, of rows in an order that only the curators know"


def _pad(pad: Pad) -> str:
    match pad:
        case Pad.CHACHA20:
            return "ChaCha20, one key an attribute"
        case Pad.OTP:
            return "one-time pad"


def _epsilon(spec: TableSpec) -> str:
    if spec.delta is None:
        return f"{guaranteed_epsilon(spec).normalize():f}"
    return f"{spec.epsilon.normalize():f} at delta {delta_text(spec.delta)}"
