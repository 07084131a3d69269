"""A node's one decision: whether it reports, and which randomised value."""

from collections.abc import Sequence

import numpy as np

from veiltab.common.collection.oracles import Report
from veiltab.common.collection.oracles.draws import draw_word
from veiltab.common.collection.round import EVERYONE, Round, Stratum
from veiltab.common.core.domain import POSITION
from veiltab.common.core.randomness import ByteSource, SystemSource
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.grids import rounded
from veiltab.common.study.file import NodeGroup, Study

_SHOWN = 8
COIN = 2**23
"""Label of the coin in a source of randomness; the randomisers' labels lie below."""


def decide(spec: Round, stratum: Stratum, symbol: int, source: ByteSource | None = None) -> Report | None:
    """Toss the node's coin and randomise its value.

    The node reports if a 64-bit word is below stratum.coin, so with probability stratum.probability exactly. It
    randomises the value either way, so that neither the work nor its duration reveals the coin.

    Args:
        symbol: its value's category, 0..d-1.
        source: source of the coin and the randomisation; the operating system except in tests.

    Returns:
        The report, or None if this node stays silent.

    Raises:
        InvalidInputError: the symbol is outside the domain.

    Source: Biswas, Cormode, Maple, Section 2 (sampled k-RR). The report is epsilon-differentially private for
    substitution of the value, against anyone who sees it, with the round's epsilon.
    """
    source = source or SystemSource()
    word = draw_word(8, source, label=COIN)
    report = spec.randomiser.randomise(symbol, source)
    return report if word < stratum.coin else None


def check_round(spec: Round, study: Study, stratum: str) -> Stratum:
    """Return a node's stratum in a round; refuse a round that contradicts the node's study file.

    Raises:
        InvalidInputError: another study file, another domain, an epsilon above the nodes' budget or the researcher's
            share of it, no such stratum.
    """
    if spec.study_digest != study.digest:
        raise InvalidInputError(
            "the round is of another study file than this node's",
            where=f"round {spec.round_id}",
            remedy="Give every party the same bytes.",
        )
    if spec.size != study.question(spec.question).attribute.size:
        raise InvalidInputError("the question is not as the study says", where=f"question {spec.question}")
    if spec.epsilon > check_nodes(study).budget_epsilon:
        raise InvalidInputError("the round costs more than the study allows a node", where="epsilon")
    if spec.epsilon > study.share_of(spec.researcher):
        raise InvalidInputError("the round costs more than the study allows its researcher", where="epsilon")
    names = [one.name for one in spec.strata]
    if stratum == EVERYONE and EVERYONE not in names:
        raise InvalidInputError(
            "this study has strata: name the stratum of the node", where="stratum", remedy=f"Strata: {_some(names)}."
        )
    return spec.stratum(stratum)


def check_nodes(study: Study) -> NodeGroup:
    """Return the nodes of a study; raises InvalidInputError if it has none."""
    if study.nodes is None:
        raise InvalidInputError("this study has no nodes", where="study file", remedy="Add [nodes] to it.")
    return study.nodes


def symbol_of(study: Study, question: str, raw: str) -> int:
    """Return the category of a raw value, of a number one drawn at random; it serves one answer.

    Raises:
        InvalidInputError: the value has none; the message does not repeat it.
    """
    coding = study.question(question).coding
    code = coding.code(raw)
    if code < 0:
        raise InvalidInputError(
            "the value is outside the domain",
            where=f"question {question}",
            remedy=f"Categories: {_some(coding.categories)}.",
        )
    if coding.grid is None:
        return code
    return int(next(rounded(np.array([code], POSITION), len(coding.categories), SystemSource()))[0])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
