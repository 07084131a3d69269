"""Requests, specs and what they consist of, to and from protocol messages."""

from collections.abc import Collection, Sized
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.core.texts.message_fields import MessageNumbers, text_from_proto, whole_from_proto
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.noise_split import parse_split
from veiltab.common.release.guarantees import check_keeps_what_was_asked
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec, TablePlan
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, Spec, TableSpec
from veiltab.common.schemes import SCHEMES
from veiltab.common.study.limits import MAX_TABLES
from veiltab.v1 import release_pb2

_STATES = MessageNumbers(
    "release state", {one: getattr(release_pb2, f"RELEASE_STATE_{one.name}") for one in ReleaseState}
)
_SAMPLINGS = MessageNumbers(
    "sampling mode", {one: getattr(release_pb2, f"SAMPLING_MODE_{one.name}") for one in Sampling}
)
_PADS = MessageNumbers("kind of pad", {one: getattr(release_pb2, f"PAD_KIND_{one.name}") for one in Pad})
_SCHEMES = MessageNumbers(
    "sampling scheme", {name: getattr(release_pb2, f"SCHEME_{name.upper().replace('.', '_')}") for name in SCHEMES}
)
state_to_proto, state_from_proto = _STATES.encode, _STATES.decode
sampling_to_proto, sampling_from_proto = _SAMPLINGS.encode, _SAMPLINGS.decode
pad_to_proto, pad_from_proto = _PADS.encode, _PADS.decode
scheme_to_proto, scheme_from_proto = _SCHEMES.encode, _SCHEMES.decode

MAX_COLUMNS = 64
"""Most columns of a release; with two categories each, fewer already have more cells than any release may have."""

_PROBABILITY_BYTES = 9

_LONGEST_KEPT = 1 << 14
"""Longest message of a spec, in bytes, that is remembered with what it says."""

_ALIKE_TEXTS = ("release_id", "study_digest", "researcher", "alignment")
_ALIKE_NUMBERS = ("population", "sample", "deadline")


def spec_to_proto(spec: TableSpec) -> release_pb2.TableSpec:
    """Encode the spec of a table."""
    return release_pb2.TableSpec(
        **_alike_to_proto(spec),
        server_replacement=_units_to_proto(spec.server_replacement),
        curator_replacement=_units_to_proto(spec.curator_replacement),
        canaries=spec.canaries,
        part_of=spec.part_of,
    )


def _alike_to_proto(spec: Spec) -> dict[str, Any]:
    return same_fields(spec, (*_ALIKE_TEXTS, *_ALIKE_NUMBERS, "stage")) | {
        "columns": [
            release_pb2.Column(**same_fields(column, ("attribute", "owner", "size", "others")))
            for column in spec.columns
        ],
        "epsilon": str(spec.epsilon),
        "delta": _optional_text(spec.delta),
        "scheme": scheme_to_proto(spec.scheme),
        "sampling": sampling_to_proto(spec.sampling),
        "pad": pad_to_proto(spec.pad),
    }


def _alike_from_proto(message: release_pb2.TableSpec | release_pb2.ReleaseSpec) -> dict[str, Any]:
    texts = {name: text_from_proto(text, name) for name, text in same_fields(message, _ALIKE_TEXTS).items()}
    numbers = {name: whole_from_proto(number, name) for name, number in same_fields(message, _ALIKE_NUMBERS).items()}
    return texts | numbers | _design_from_proto(message) | {"columns": _columns_from_proto(message.columns)}


def _design_from_proto(
    message: release_pb2.TableSpec | release_pb2.ReleaseSpec | release_pb2.ReleaseRequest,
) -> dict[str, Any]:
    return {
        "epsilon": parse_epsilon(text_from_proto(message.epsilon, "epsilon")),
        "delta": parse_delta(text_from_proto(message.delta, "delta")) if message.HasField("delta") else None,
        "scheme": scheme_from_proto(message.scheme),
        "stage": whole_from_proto(message.stage, "stage") if message.HasField("stage") else None,
        "sampling": sampling_from_proto(message.sampling),
        "pad": pad_from_proto(message.pad),
    }


def spec_from_proto(message: release_pb2.TableSpec) -> TableSpec:
    """Decode and validate a release spec, whose mechanism keeps what was asked for."""
    data = message.SerializeToString(deterministic=True)
    # Longer ones are padded with what nobody knows here; they are not kept.
    return _remembered_spec(data) if len(data) <= _LONGEST_KEPT else _spec_of(message)


@lru_cache(maxsize=256)
def _remembered_spec(data: bytes) -> TableSpec:
    """Decode a spec once; each party of a release states the same one, some of them again and again."""
    return _spec_of(release_pb2.TableSpec.FromString(data))


def _spec_of(message: release_pb2.TableSpec) -> TableSpec:
    spec = TableSpec(
        **_alike_from_proto(message),
        server_replacement=_units_from_proto(message.server_replacement),
        curator_replacement=_units_from_proto(message.curator_replacement),
        canaries=whole_from_proto(message.canaries, "canaries"),
        part_of=text_from_proto(message.part_of, "part of"),
    )
    check_keeps_what_was_asked(spec)
    return spec


def release_to_proto(release: ReleaseSpec) -> release_pb2.ReleaseSpec:
    """Encode the spec of a release."""
    return release_pb2.ReleaseSpec(
        **_alike_to_proto(release),
        several=release.several,
        tables=map(_table_to_proto, release.tables),
        repeated_tables=map(_table_to_proto, release.repeated),
        repeats=release.repeats,
    )


def release_from_proto(message: release_pb2.ReleaseSpec) -> ReleaseSpec:
    """Decode and validate a release's spec.

    One table keeps what was asked for; of several, who reads it checks what they cost together.
    """
    data = message.SerializeToString(deterministic=True)
    return _remembered_release(data) if len(data) <= _LONGEST_KEPT else _release_of(message)


@lru_cache(maxsize=256)
def _remembered_release(data: bytes) -> ReleaseSpec:
    return _release_of(release_pb2.ReleaseSpec.FromString(data))


def _release_of(message: release_pb2.ReleaseSpec) -> ReleaseSpec:
    release = ReleaseSpec(
        **_alike_from_proto(message),
        several=message.several,
        tables=_tables_from_proto(message.tables),
        repeated=_tables_from_proto(message.repeated_tables),
        repeats=message.repeats,
    )
    if release.only_table is not None:
        check_keeps_what_was_asked(release.only_table)
    return release


def _table_to_proto(table: TablePlan) -> release_pb2.TablePlan:
    return release_pb2.TablePlan(
        columns=table.columns,
        server_replacement=_units_to_proto(table.server_replacement),
        curator_replacement=_units_to_proto(table.curator_replacement),
        canaries=table.canaries,
    )


def _tables_from_proto(messages: Collection[release_pb2.TablePlan]) -> tuple[TablePlan, ...]:
    _check_most(messages, MAX_TABLES, "tables")
    return tuple(
        TablePlan(
            columns=tuple(message.columns),
            server_replacement=_units_from_proto(message.server_replacement),
            curator_replacement=_units_from_proto(message.curator_replacement),
            canaries=whole_from_proto(message.canaries, "canaries"),
        )
        for message in messages
    )


def _units_to_proto(units: int) -> bytes:
    return units.to_bytes(_PROBABILITY_BYTES, "big")


def _units_from_proto(data: bytes) -> int:
    if len(data) != _PROBABILITY_BYTES:
        raise InvalidInputError(
            f"the replacement probability does not have {_PROBABILITY_BYTES} bytes", where="release spec"
        )
    return int.from_bytes(data, "big")


def _columns_from_proto(messages: Collection[release_pb2.Column]) -> tuple[Column, ...]:
    _check_most(messages, MAX_COLUMNS, "columns")
    return tuple(
        Column(
            attribute=text_from_proto(message.attribute, "attribute"),
            owner=text_from_proto(message.owner, "owner"),
            size=message.size,
            others=tuple(text_from_proto(name, "others") for name in message.others) or None,
        )
        for message in messages
    )


def _check_most(messages: Sized, most: int, what: str, where: str = "") -> None:
    """Refuse more messages than a release can have, before any of them is read."""
    if len(messages) > most:
        raise InvalidInputError(f"the release has more than {most} {what}", where=where or what)


def request_to_proto(request: ReleaseRequest) -> release_pb2.ReleaseRequest:
    """Encode a request; the researcher's name travels in its certificate."""
    as_they_are = (
        "release_id",
        "attributes",
        "purpose",
        "deadline",
        "partial",
        "sample",
        "stage",
        "canaries",
        "repeats",
    )
    return release_pb2.ReleaseRequest(
        **same_fields(request, as_they_are),
        epsilon=str(request.epsilon),
        sampling=sampling_to_proto(request.sampling),
        pad=pad_to_proto(request.pad),
        delta=_optional_text(request.delta),
        max_local_epsilon=_optional_text(request.max_local_epsilon),
        scheme=scheme_to_proto(request.scheme),
        noise_split=str(request.noise_split),
        max_pair_epsilon=_optional_text(request.max_pair_epsilon),
        tables=[release_pb2.Table(attributes=table) for table in request.tables],
    )


def request_from_proto(message: release_pb2.ReleaseRequest, researcher: str) -> ReleaseRequest:
    """Decode and validate a request of the researcher that the certificate names."""
    _check_most(message.attributes, MAX_COLUMNS, "columns", where="attributes")
    _check_most(message.tables, MAX_TABLES, "tables")
    return ReleaseRequest(
        **_design_from_proto(message),
        max_local_epsilon=_limit_from_proto(message, "max_local_epsilon"),
        max_pair_epsilon=_limit_from_proto(message, "max_pair_epsilon"),
        release_id=text_from_proto(message.release_id, "release id"),
        researcher=researcher,
        attributes=tuple(text_from_proto(name, "attributes") for name in message.attributes),
        purpose=message.purpose,
        deadline=whole_from_proto(message.deadline, "deadline"),
        partial=message.partial,
        sample=whole_from_proto(message.sample, "sample") if message.HasField("sample") else None,
        noise_split=parse_split(text_from_proto(message.noise_split, "noise_split")),
        canaries=whole_from_proto(message.canaries, "canaries") if message.HasField("canaries") else None,
        tables=tuple(
            tuple(text_from_proto(name, "tables") for name in table.attributes[:MAX_COLUMNS])
            for table in message.tables
        ),
        repeats=message.repeats,
    )


def _limit_from_proto(
    message: release_pb2.ReleaseRequest, name: Literal["max_local_epsilon", "max_pair_epsilon"]
) -> Decimal | None:
    return parse_epsilon(text_from_proto(getattr(message, name), name), what=name) if message.HasField(name) else None


def _optional_text(number: Decimal | None) -> str | None:
    return None if number is None else str(number)


def receipt_to_proto(receipt: Receipt, *, with_counts: bool) -> release_pb2.Receipt:
    """Encode a receipt; an analyst gets it without counts."""
    return release_pb2.Receipt(
        curator=receipt.tester,
        canaries=receipt.canaries,
        expected=str(receipt.expected),
        sd=str(receipt.sd),
        passed=receipt.passed,
        text=receipt.text if with_counts else "",
    )


def receipt_from_proto(message: release_pb2.Receipt) -> Receipt:
    """Decode a whole receipt.

    Raises:
        InvalidInputError: it is none.
    """
    try:
        return read_canonical(Receipt, message.text)
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
        raise InvalidInputError("this is not a receipt of tests", where="receipt") from None
