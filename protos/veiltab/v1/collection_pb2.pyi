from veiltab.v1 import access_pb2 as _access_pb2
from veiltab.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RoundState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROUND_STATE_UNSPECIFIED: _ClassVar[RoundState]
    ROUND_STATE_OPEN: _ClassVar[RoundState]
    ROUND_STATE_CLOSED: _ClassVar[RoundState]

class Oracle(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORACLE_UNSPECIFIED: _ClassVar[Oracle]
    ORACLE_KRR: _ClassVar[Oracle]
    ORACLE_OUE: _ClassVar[Oracle]
    ORACLE_OLH: _ClassVar[Oracle]
    ORACLE_SS: _ClassVar[Oracle]
ROUND_STATE_UNSPECIFIED: RoundState
ROUND_STATE_OPEN: RoundState
ROUND_STATE_CLOSED: RoundState
ORACLE_UNSPECIFIED: Oracle
ORACLE_KRR: Oracle
ORACLE_OUE: Oracle
ORACLE_OLH: Oracle
ORACLE_SS: Oracle

class Stratum(_message.Message):
    __slots__ = ("name", "population", "rate")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    population: int
    rate: str
    def __init__(self, name: _Optional[str] = ..., population: _Optional[int] = ..., rate: _Optional[str] = ...) -> None: ...

class Round(_message.Message):
    __slots__ = ("round_id", "study_digest", "researcher", "question", "size", "epsilon", "oracle", "parameters", "strata", "deadline")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESEARCHER_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    ORACLE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    STRATA_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    round_id: str
    study_digest: str
    researcher: str
    question: str
    size: int
    epsilon: str
    oracle: Oracle
    parameters: _containers.ScalarMap[str, str]
    strata: _containers.RepeatedCompositeFieldContainer[Stratum]
    deadline: int
    def __init__(self, round_id: _Optional[str] = ..., study_digest: _Optional[str] = ..., researcher: _Optional[str] = ..., question: _Optional[str] = ..., size: _Optional[int] = ..., epsilon: _Optional[str] = ..., oracle: _Optional[_Union[Oracle, str]] = ..., parameters: _Optional[_Mapping[str, str]] = ..., strata: _Optional[_Iterable[_Union[Stratum, _Mapping]]] = ..., deadline: _Optional[int] = ...) -> None: ...

class OpenRoundRequest(_message.Message):
    __slots__ = ("round", "signed")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    SIGNED_FIELD_NUMBER: _ClassVar[int]
    round: Round
    signed: _release_pb2.SignedStatement
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., signed: _Optional[_Union[_release_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class OpenRoundResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: RoundState
    def __init__(self, state: _Optional[_Union[RoundState, str]] = ...) -> None: ...

class EnrolTokensRequest(_message.Message):
    __slots__ = ("round_id", "stratum", "digests")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    STRATUM_FIELD_NUMBER: _ClassVar[int]
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    round_id: str
    stratum: str
    digests: bytes
    def __init__(self, round_id: _Optional[str] = ..., stratum: _Optional[str] = ..., digests: _Optional[bytes] = ...) -> None: ...

class EnrolTokensResponse(_message.Message):
    __slots__ = ("enrolled",)
    ENROLLED_FIELD_NUMBER: _ClassVar[int]
    enrolled: int
    def __init__(self, enrolled: _Optional[int] = ...) -> None: ...

class GetRoundRequest(_message.Message):
    __slots__ = ("round_id",)
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    round_id: str
    def __init__(self, round_id: _Optional[str] = ...) -> None: ...

class GetRoundResponse(_message.Message):
    __slots__ = ("round", "state", "signed")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SIGNED_FIELD_NUMBER: _ClassVar[int]
    round: Round
    state: RoundState
    signed: _release_pb2.SignedStatement
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., state: _Optional[_Union[RoundState, str]] = ..., signed: _Optional[_Union[_release_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class GetRoundStatusRequest(_message.Message):
    __slots__ = ("round_id",)
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    round_id: str
    def __init__(self, round_id: _Optional[str] = ...) -> None: ...

class GetRoundStatusResponse(_message.Message):
    __slots__ = ("round", "state", "closed", "enrolled", "reports")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    ENROLLED_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    round: Round
    state: RoundState
    closed: int
    enrolled: _containers.RepeatedScalarFieldContainer[int]
    reports: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., state: _Optional[_Union[RoundState, str]] = ..., closed: _Optional[int] = ..., enrolled: _Optional[_Iterable[int]] = ..., reports: _Optional[_Iterable[int]] = ...) -> None: ...

class ListRoundsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRoundsResponse(_message.Message):
    __slots__ = ("round_ids",)
    ROUND_IDS_FIELD_NUMBER: _ClassVar[int]
    round_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, round_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CloseRoundRequest(_message.Message):
    __slots__ = ("round_id",)
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    round_id: str
    def __init__(self, round_id: _Optional[str] = ...) -> None: ...

class CloseRoundResponse(_message.Message):
    __slots__ = ("closed", "already")
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    ALREADY_FIELD_NUMBER: _ClassVar[int]
    closed: int
    already: bool
    def __init__(self, closed: _Optional[int] = ..., already: bool = ...) -> None: ...

class FetchCountsRequest(_message.Message):
    __slots__ = ("round_id", "offset")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    round_id: str
    offset: int
    def __init__(self, round_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchCountsResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class HashedReport(_message.Message):
    __slots__ = ("seed", "symbol")
    SEED_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    seed: bytes
    symbol: int
    def __init__(self, seed: _Optional[bytes] = ..., symbol: _Optional[int] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("round_id", "token", "stratum", "category", "bits", "hashed", "subset")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    STRATUM_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    HASHED_FIELD_NUMBER: _ClassVar[int]
    SUBSET_FIELD_NUMBER: _ClassVar[int]
    round_id: str
    token: bytes
    stratum: str
    category: int
    bits: bytes
    hashed: HashedReport
    subset: bytes
    def __init__(self, round_id: _Optional[str] = ..., token: _Optional[bytes] = ..., stratum: _Optional[str] = ..., category: _Optional[int] = ..., bits: _Optional[bytes] = ..., hashed: _Optional[_Union[HashedReport, _Mapping]] = ..., subset: _Optional[bytes] = ...) -> None: ...

class ReportResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
