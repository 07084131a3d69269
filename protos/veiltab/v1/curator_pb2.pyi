from veiltab.v1 import access_pb2 as _access_pb2
from veiltab.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProposeReleaseRequest(_message.Message):
    __slots__ = ("study_digest", "request", "wait_milliseconds", "with_statement", "witnessed")
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    WAIT_MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    WITH_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    WITNESSED_FIELD_NUMBER: _ClassVar[int]
    study_digest: str
    request: _release_pb2.ReleaseRequest
    wait_milliseconds: int
    with_statement: bool
    witnessed: _release_pb2.LedgerHead
    def __init__(self, study_digest: _Optional[str] = ..., request: _Optional[_Union[_release_pb2.ReleaseRequest, _Mapping]] = ..., wait_milliseconds: _Optional[int] = ..., with_statement: bool = ..., witnessed: _Optional[_Union[_release_pb2.LedgerHead, _Mapping]] = ...) -> None: ...

class ProposeReleaseResponse(_message.Message):
    __slots__ = ("state", "proposal")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    state: _release_pb2.ReleaseState
    proposal: GetProposalResponse
    def __init__(self, state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., proposal: _Optional[_Union[GetProposalResponse, _Mapping]] = ...) -> None: ...

class GetProposalRequest(_message.Message):
    __slots__ = ("release_id", "wait_milliseconds", "with_statement")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    WITH_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    wait_milliseconds: int
    with_statement: bool
    def __init__(self, release_id: _Optional[str] = ..., wait_milliseconds: _Optional[int] = ..., with_statement: bool = ...) -> None: ...

class GetProposalResponse(_message.Message):
    __slots__ = ("state", "waiting_for", "failure", "granted", "denied", "spec", "bytes_uploaded", "seconds", "table", "left_out", "receipt", "statement")
    class SecondsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    BYTES_UPLOADED_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    state: _release_pb2.ReleaseState
    waiting_for: str
    failure: str
    granted: _containers.RepeatedScalarFieldContainer[str]
    denied: _containers.RepeatedScalarFieldContainer[str]
    spec: _release_pb2.ReleaseSpec
    bytes_uploaded: int
    seconds: _containers.ScalarMap[str, float]
    table: _release_pb2.TableSpec
    left_out: int
    receipt: GetReceiptResponse
    statement: _release_pb2.SignedStatement
    def __init__(self, state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., waiting_for: _Optional[str] = ..., failure: _Optional[str] = ..., granted: _Optional[_Iterable[str]] = ..., denied: _Optional[_Iterable[str]] = ..., spec: _Optional[_Union[_release_pb2.ReleaseSpec, _Mapping]] = ..., bytes_uploaded: _Optional[int] = ..., seconds: _Optional[_Mapping[str, float]] = ..., table: _Optional[_Union[_release_pb2.TableSpec, _Mapping]] = ..., left_out: _Optional[int] = ..., receipt: _Optional[_Union[GetReceiptResponse, _Mapping]] = ..., statement: _Optional[_Union[_release_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class ChooseTablesRequest(_message.Message):
    __slots__ = ("release_id", "numbers")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    numbers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, release_id: _Optional[str] = ..., numbers: _Optional[_Iterable[int]] = ...) -> None: ...

class ChooseTablesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ColumnDigests(_message.Message):
    __slots__ = ("published", "canaries")
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    CANARIES_FIELD_NUMBER: _ClassVar[int]
    published: bytes
    canaries: bytes
    def __init__(self, published: _Optional[bytes] = ..., canaries: _Optional[bytes] = ...) -> None: ...

class GetKeysRequest(_message.Message):
    __slots__ = ("release_id", "columns")
    class ColumnsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ColumnDigests
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ColumnDigests, _Mapping]] = ...) -> None: ...
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    columns: _containers.MessageMap[str, ColumnDigests]
    def __init__(self, release_id: _Optional[str] = ..., columns: _Optional[_Mapping[str, ColumnDigests]] = ...) -> None: ...

class GetKeysResponse(_message.Message):
    __slots__ = ("keys",)
    class KeysEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.ScalarMap[str, bytes]
    def __init__(self, keys: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class FetchPadRequest(_message.Message):
    __slots__ = ("release_id", "attribute", "offset", "published_digest", "canary_digest")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CANARY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    attribute: str
    offset: int
    published_digest: bytes
    canary_digest: bytes
    def __init__(self, release_id: _Optional[str] = ..., attribute: _Optional[str] = ..., offset: _Optional[int] = ..., published_digest: _Optional[bytes] = ..., canary_digest: _Optional[bytes] = ...) -> None: ...

class FetchPadResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class GetReceiptRequest(_message.Message):
    __slots__ = ("release_id",)
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    def __init__(self, release_id: _Optional[str] = ...) -> None: ...

class GetReceiptResponse(_message.Message):
    __slots__ = ("receipts", "changes", "canary_key", "digests", "places_digest")
    class ChangesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    class DigestsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CANARY_KEY_FIELD_NUMBER: _ClassVar[int]
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    PLACES_DIGEST_FIELD_NUMBER: _ClassVar[int]
    receipts: _containers.RepeatedCompositeFieldContainer[_release_pb2.Receipt]
    changes: _containers.ScalarMap[str, bytes]
    canary_key: bytes
    digests: _containers.ScalarMap[str, bytes]
    places_digest: bytes
    def __init__(self, receipts: _Optional[_Iterable[_Union[_release_pb2.Receipt, _Mapping]]] = ..., changes: _Optional[_Mapping[str, bytes]] = ..., canary_key: _Optional[bytes] = ..., digests: _Optional[_Mapping[str, bytes]] = ..., places_digest: _Optional[bytes] = ...) -> None: ...

class GetCuratorStatementRequest(_message.Message):
    __slots__ = ("release_id",)
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    def __init__(self, release_id: _Optional[str] = ...) -> None: ...

class GetCuratorStatementResponse(_message.Message):
    __slots__ = ("statement",)
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    statement: _release_pb2.SignedStatement
    def __init__(self, statement: _Optional[_Union[_release_pb2.SignedStatement, _Mapping]] = ...) -> None: ...
