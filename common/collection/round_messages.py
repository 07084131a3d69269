"""Rounds and reports, to and from protocol messages."""

from decimal import Decimal, InvalidOperation
from typing import assert_never

from veiltab.common.collection.oracles import ORACLE_NAMES, Bits, Category, Hashed, Report, Subset
from veiltab.common.collection.round import Round, RoundState, Stratum
from veiltab.common.collection.tokens import TOKEN_BYTES
from veiltab.common.core.texts.message_fields import MessageNumbers, text_from_proto, whole_from_proto
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.members import MAX_STRATA
from veiltab.v1 import collection_pb2

_LONGEST_NUMBER = 100
_STATES = MessageNumbers("round state", {one: getattr(collection_pb2, f"ROUND_STATE_{one.name}") for one in RoundState})
_ORACLES = MessageNumbers("oracle", {name: getattr(collection_pb2, f"ORACLE_{name.upper()}") for name in ORACLE_NAMES})
state_to_proto, state_from_proto = _STATES.encode, _STATES.decode
oracle_to_proto, oracle_from_proto = _ORACLES.encode, _ORACLES.decode
_AS_THEY_ARE = ("round_id", "study_digest", "researcher", "question", "size")


def round_to_proto(spec: Round) -> collection_pb2.Round:
    """Encode a round."""
    return collection_pb2.Round(
        **same_fields(spec, _AS_THEY_ARE),
        epsilon=str(spec.epsilon),
        oracle=oracle_to_proto(spec.oracle),
        parameters={name: str(value) for name, value in spec.parameters},
        strata=[collection_pb2.Stratum(name=s.name, population=s.population, rate=str(s.rate)) for s in spec.strata],
        deadline=spec.deadline,
    )


def round_from_proto(message: collection_pb2.Round) -> Round:
    """Decode a round; raises InvalidInputError for one that cannot be."""
    if len(message.strata) > MAX_STRATA:
        raise InvalidInputError(f"the round has more than {MAX_STRATA} strata", where="strata")
    return Round(
        **same_fields(message, _AS_THEY_ARE),
        epsilon=_decimal(message.epsilon, "epsilon"),
        oracle=oracle_from_proto(message.oracle),
        parameters=tuple(
            sorted((text_from_proto(name, "parameters"), _whole(value)) for name, value in message.parameters.items())
        ),
        strata=tuple(
            Stratum(name=text_from_proto(s.name, "strata"), population=s.population, rate=_decimal(s.rate, "rate"))
            for s in message.strata
        ),
        deadline=whole_from_proto(message.deadline, "deadline"),
    )


def _decimal(text: str, where: str) -> Decimal:
    try:
        number = Decimal(text) if text.isascii() and len(text) <= _LONGEST_NUMBER else None
    except InvalidOperation:
        number = None
    if number is None:
        raise InvalidInputError(f"this is not a decimal number of at most {_LONGEST_NUMBER} characters", where=where)
    return number


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise InvalidInputError("a parameter of the randomiser is not a whole number", where="parameters")
    return int(text)


def report_to_proto(round_id: str, token: bytes, stratum: str, report: Report) -> collection_pb2.ReportRequest:
    """Encode a report; its length depends on the round alone."""
    if len(token) != TOKEN_BYTES:
        raise InvalidInputError(f"the token has {len(token)} bytes, not {TOKEN_BYTES}")
    request = collection_pb2.ReportRequest(round_id=round_id, token=token, stratum=stratum)
    match report:
        case Category():
            request.category = report.symbol
        case Bits():
            request.bits = report.bits
        case Hashed():
            request.hashed.seed = report.seed
            request.hashed.symbol = report.symbol
        case Subset():
            request.subset = report.values
        case _:
            assert_never(report)
    return request


def report_from_proto(message: collection_pb2.ReportRequest) -> Report:
    """Decode the payload of a report; the randomiser then checks whether it fits the round."""
    match message.WhichOneof("payload"):
        case "category":
            return Category(symbol=message.category)
        case "bits":
            return Bits(bits=message.bits)
        case "hashed":
            if not message.hashed.HasField("symbol"):
                raise InvalidInputError("the report of local hashing has no symbol", where="payload")
            return Hashed(seed=message.hashed.seed, symbol=message.hashed.symbol)
        case "subset":
            return Subset(values=message.subset)
        case _:
            raise InvalidInputError(
                "the report has a payload that this version does not know",
                where="payload",
                remedy="Run the same version at every party.",
            )
