from veiltab.v1 import access_pb2 as _access_pb2
from veiltab.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JoinKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOIN_KIND_UNSPECIFIED: _ClassVar[JoinKind]
    JOIN_KIND_BASE_CHOICES: _ClassVar[JoinKind]
    JOIN_KIND_BASE_ANSWER: _ClassVar[JoinKind]
    JOIN_KIND_COLUMNS: _ClassVar[JoinKind]
    JOIN_KIND_CHALLENGE: _ClassVar[JoinKind]
    JOIN_KIND_ANSWER: _ClassVar[JoinKind]
    JOIN_KIND_VALUES: _ClassVar[JoinKind]
    JOIN_KIND_AGREEMENT: _ClassVar[JoinKind]
    JOIN_KIND_TABLE: _ClassVar[JoinKind]
JOIN_KIND_UNSPECIFIED: JoinKind
JOIN_KIND_BASE_CHOICES: JoinKind
JOIN_KIND_BASE_ANSWER: JoinKind
JOIN_KIND_COLUMNS: JoinKind
JOIN_KIND_CHALLENGE: JoinKind
JOIN_KIND_ANSWER: JoinKind
JOIN_KIND_VALUES: JoinKind
JOIN_KIND_AGREEMENT: JoinKind
JOIN_KIND_TABLE: JoinKind

class HelloRequest(_message.Message):
    __slots__ = ("study_digest", "ledger_length", "ledger_head")
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LEDGER_LENGTH_FIELD_NUMBER: _ClassVar[int]
    LEDGER_HEAD_FIELD_NUMBER: _ClassVar[int]
    study_digest: str
    ledger_length: int
    ledger_head: bytes
    def __init__(self, study_digest: _Optional[str] = ..., ledger_length: _Optional[int] = ..., ledger_head: _Optional[bytes] = ...) -> None: ...

class HelloResponse(_message.Message):
    __slots__ = ("study_digest", "table_version", "witnessed_length", "witnessed_head")
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TABLE_VERSION_FIELD_NUMBER: _ClassVar[int]
    WITNESSED_LENGTH_FIELD_NUMBER: _ClassVar[int]
    WITNESSED_HEAD_FIELD_NUMBER: _ClassVar[int]
    study_digest: str
    table_version: str
    witnessed_length: int
    witnessed_head: bytes
    def __init__(self, study_digest: _Optional[str] = ..., table_version: _Optional[str] = ..., witnessed_length: _Optional[int] = ..., witnessed_head: _Optional[bytes] = ...) -> None: ...

class CommitRequest(_message.Message):
    __slots__ = ("coin_id", "commitment")
    COIN_ID_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    coin_id: str
    commitment: bytes
    def __init__(self, coin_id: _Optional[str] = ..., commitment: _Optional[bytes] = ...) -> None: ...

class CommitResponse(_message.Message):
    __slots__ = ("commitment",)
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    commitment: bytes
    def __init__(self, commitment: _Optional[bytes] = ...) -> None: ...

class RevealRequest(_message.Message):
    __slots__ = ("coin_id", "transcript", "commitment")
    COIN_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    coin_id: str
    transcript: bytes
    commitment: bytes
    def __init__(self, coin_id: _Optional[str] = ..., transcript: _Optional[bytes] = ..., commitment: _Optional[bytes] = ...) -> None: ...

class RevealResponse(_message.Message):
    __slots__ = ("share",)
    SHARE_FIELD_NUMBER: _ClassVar[int]
    share: bytes
    def __init__(self, share: _Optional[bytes] = ...) -> None: ...

class FetchTokensRequest(_message.Message):
    __slots__ = ("alignment_id", "offset")
    ALIGNMENT_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    alignment_id: str
    offset: int
    def __init__(self, alignment_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchTokensResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("alignment_id",)
    ALIGNMENT_ID_FIELD_NUMBER: _ClassVar[int]
    alignment_id: str
    def __init__(self, alignment_id: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("part", "size", "order", "finished", "failed")
    PART_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    part: bytes
    size: int
    order: bytes
    finished: str
    failed: str
    def __init__(self, part: _Optional[bytes] = ..., size: _Optional[int] = ..., order: _Optional[bytes] = ..., finished: _Optional[str] = ..., failed: _Optional[str] = ...) -> None: ...

class FetchJoinRequest(_message.Message):
    __slots__ = ("alignment_id", "session", "kind", "number", "offset", "wait_milliseconds")
    ALIGNMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    WAIT_MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    alignment_id: str
    session: str
    kind: JoinKind
    number: int
    offset: int
    wait_milliseconds: int
    def __init__(self, alignment_id: _Optional[str] = ..., session: _Optional[str] = ..., kind: _Optional[_Union[JoinKind, str]] = ..., number: _Optional[int] = ..., offset: _Optional[int] = ..., wait_milliseconds: _Optional[int] = ...) -> None: ...

class FetchJoinResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class FetchIndicesRequest(_message.Message):
    __slots__ = ("release_id", "offset")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    offset: int
    def __init__(self, release_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchIndicesResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class FetchCanaryPartRequest(_message.Message):
    __slots__ = ("release_id", "attribute", "offset")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    attribute: str
    offset: int
    def __init__(self, release_id: _Optional[str] = ..., attribute: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchCanaryPartResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class GetCanaryChangesRequest(_message.Message):
    __slots__ = ("release_id",)
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    def __init__(self, release_id: _Optional[str] = ...) -> None: ...

class GetCanaryChangesResponse(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: bytes
    def __init__(self, changes: _Optional[bytes] = ...) -> None: ...

class FollowProgressRequest(_message.Message):
    __slots__ = ("release_ids",)
    RELEASE_IDS_FIELD_NUMBER: _ClassVar[int]
    release_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, release_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class FollowProgressResponse(_message.Message):
    __slots__ = ("releases", "unknown")
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    releases: _containers.RepeatedCompositeFieldContainer[ReleaseProgress]
    unknown: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, releases: _Optional[_Iterable[_Union[ReleaseProgress, _Mapping]]] = ..., unknown: _Optional[_Iterable[str]] = ...) -> None: ...

class ReleaseProgress(_message.Message):
    __slots__ = ("release_id", "state", "decided", "granted", "denied", "spec_digest", "reserved", "charged", "sample_check", "failure", "tested", "commitment", "publication", "request_digest", "considered", "checkpoint", "uploaded", "changes")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    SPEC_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_CHECK_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    TESTED_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    PUBLICATION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CONSIDERED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    UPLOADED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    state: _release_pb2.ReleaseState
    decided: bool
    granted: _containers.RepeatedScalarFieldContainer[str]
    denied: _containers.RepeatedScalarFieldContainer[str]
    spec_digest: bytes
    reserved: bool
    charged: bool
    sample_check: bytes
    failure: str
    tested: bool
    commitment: bytes
    publication: bytes
    request_digest: bytes
    considered: bool
    checkpoint: bytes
    uploaded: bool
    changes: bytes
    def __init__(self, release_id: _Optional[str] = ..., state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., decided: bool = ..., granted: _Optional[_Iterable[str]] = ..., denied: _Optional[_Iterable[str]] = ..., spec_digest: _Optional[bytes] = ..., reserved: bool = ..., charged: bool = ..., sample_check: _Optional[bytes] = ..., failure: _Optional[str] = ..., tested: bool = ..., commitment: _Optional[bytes] = ..., publication: _Optional[bytes] = ..., request_digest: _Optional[bytes] = ..., considered: bool = ..., checkpoint: _Optional[bytes] = ..., uploaded: bool = ..., changes: _Optional[bytes] = ...) -> None: ...
