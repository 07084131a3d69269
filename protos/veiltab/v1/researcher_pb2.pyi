from veiltab.v1 import access_pb2 as _access_pb2
from veiltab.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Subject(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUBJECT_UNSPECIFIED: _ClassVar[Subject]
    SUBJECT_RELEASES: _ClassVar[Subject]
    SUBJECT_STATUS: _ClassVar[Subject]
    SUBJECT_COUNTS: _ClassVar[Subject]
    SUBJECT_STUDY_FILE: _ClassVar[Subject]
SUBJECT_UNSPECIFIED: Subject
SUBJECT_RELEASES: Subject
SUBJECT_STATUS: Subject
SUBJECT_COUNTS: Subject
SUBJECT_STUDY_FILE: Subject

class StartReleaseRequest(_message.Message):
    __slots__ = ("request", "label", "study_digest")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    request: _release_pb2.ReleaseRequest
    label: str
    study_digest: str
    def __init__(self, request: _Optional[_Union[_release_pb2.ReleaseRequest, _Mapping]] = ..., label: _Optional[str] = ..., study_digest: _Optional[str] = ...) -> None: ...

class StartReleaseResponse(_message.Message):
    __slots__ = ("release_id", "continued")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    continued: bool
    def __init__(self, release_id: _Optional[str] = ..., continued: bool = ...) -> None: ...

class ListReleasesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListReleasesResponse(_message.Message):
    __slots__ = ("releases",)
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    releases: _containers.RepeatedCompositeFieldContainer[ReleaseSummary]
    def __init__(self, releases: _Optional[_Iterable[_Union[ReleaseSummary, _Mapping]]] = ...) -> None: ...

class ReleaseSummary(_message.Message):
    __slots__ = ("release_id", "label", "state", "attributes", "epsilon", "created", "study_digest", "purpose", "delta")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    label: str
    state: _release_pb2.ReleaseState
    attributes: _containers.RepeatedScalarFieldContainer[str]
    epsilon: str
    created: int
    study_digest: str
    purpose: str
    delta: str
    def __init__(self, release_id: _Optional[str] = ..., label: _Optional[str] = ..., state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., attributes: _Optional[_Iterable[str]] = ..., epsilon: _Optional[str] = ..., created: _Optional[int] = ..., study_digest: _Optional[str] = ..., purpose: _Optional[str] = ..., delta: _Optional[str] = ...) -> None: ...

class GetResultRequest(_message.Message):
    __slots__ = ("release", "wait_milliseconds", "with_counts")
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    WAIT_MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    WITH_COUNTS_FIELD_NUMBER: _ClassVar[int]
    release: str
    wait_milliseconds: int
    with_counts: bool
    def __init__(self, release: _Optional[str] = ..., wait_milliseconds: _Optional[int] = ..., with_counts: bool = ...) -> None: ...

class PartyStatus(_message.Message):
    __slots__ = ("party", "state", "waiting_for")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    party: str
    state: _release_pb2.ReleaseState
    waiting_for: str
    def __init__(self, party: _Optional[str] = ..., state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., waiting_for: _Optional[str] = ...) -> None: ...

class GetResultResponse(_message.Message):
    __slots__ = ("summary", "parties", "failure", "spec", "granted", "seconds", "bytes", "receipts", "tables", "left_out", "counts")
    class SecondsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class BytesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class LeftOutEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    summary: ReleaseSummary
    parties: _containers.RepeatedCompositeFieldContainer[PartyStatus]
    failure: str
    spec: _release_pb2.ReleaseSpec
    granted: _containers.RepeatedScalarFieldContainer[str]
    seconds: _containers.ScalarMap[str, float]
    bytes: _containers.ScalarMap[str, int]
    receipts: _containers.RepeatedCompositeFieldContainer[_release_pb2.Receipt]
    tables: _containers.RepeatedCompositeFieldContainer[TableStatus]
    left_out: _containers.ScalarMap[str, int]
    counts: bytes
    def __init__(self, summary: _Optional[_Union[ReleaseSummary, _Mapping]] = ..., parties: _Optional[_Iterable[_Union[PartyStatus, _Mapping]]] = ..., failure: _Optional[str] = ..., spec: _Optional[_Union[_release_pb2.ReleaseSpec, _Mapping]] = ..., granted: _Optional[_Iterable[str]] = ..., seconds: _Optional[_Mapping[str, float]] = ..., bytes: _Optional[_Mapping[str, int]] = ..., receipts: _Optional[_Iterable[_Union[_release_pb2.Receipt, _Mapping]]] = ..., tables: _Optional[_Iterable[_Union[TableStatus, _Mapping]]] = ..., left_out: _Optional[_Mapping[str, int]] = ..., counts: _Optional[bytes] = ...) -> None: ...

class TableStatus(_message.Message):
    __slots__ = ("number", "release_id", "state", "attributes", "phase")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    number: int
    release_id: str
    state: _release_pb2.ReleaseState
    attributes: _containers.RepeatedScalarFieldContainer[str]
    phase: int
    def __init__(self, number: _Optional[int] = ..., release_id: _Optional[str] = ..., state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., attributes: _Optional[_Iterable[str]] = ..., phase: _Optional[int] = ...) -> None: ...

class FetchCertificateRequest(_message.Message):
    __slots__ = ("release_id", "offset")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    offset: int
    def __init__(self, release_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchCertificateResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class FetchHistogramRequest(_message.Message):
    __slots__ = ("release_id", "offset")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    offset: int
    def __init__(self, release_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchHistogramResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class FetchStudyRequest(_message.Message):
    __slots__ = ("study_digest", "offset")
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    study_digest: str
    offset: int
    def __init__(self, study_digest: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchStudyResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class ListAccessesRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class ListAccessesResponse(_message.Message):
    __slots__ = ("accesses",)
    ACCESSES_FIELD_NUMBER: _ClassVar[int]
    accesses: _containers.RepeatedCompositeFieldContainer[Access]
    def __init__(self, accesses: _Optional[_Iterable[_Union[Access, _Mapping]]] = ...) -> None: ...

class Access(_message.Message):
    __slots__ = ("number", "analyst", "subject", "release_id", "times", "first", "last")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ANALYST_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    number: int
    analyst: str
    subject: Subject
    release_id: str
    times: int
    first: int
    last: int
    def __init__(self, number: _Optional[int] = ..., analyst: _Optional[str] = ..., subject: _Optional[_Union[Subject, str]] = ..., release_id: _Optional[str] = ..., times: _Optional[int] = ..., first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...
