from veiltab.v1 import access_pb2 as _access_pb2
from veiltab.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenReleaseRequest(_message.Message):
    __slots__ = ("spec", "ledger")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    spec: _release_pb2.TableSpec
    ledger: _release_pb2.LedgerHead
    def __init__(self, spec: _Optional[_Union[_release_pb2.TableSpec, _Mapping]] = ..., ledger: _Optional[_Union[_release_pb2.LedgerHead, _Mapping]] = ...) -> None: ...

class OpenReleaseResponse(_message.Message):
    __slots__ = ("state", "received", "failure", "noise_digest", "witnessed")
    class ReceivedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    NOISE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    WITNESSED_FIELD_NUMBER: _ClassVar[int]
    state: _release_pb2.ReleaseState
    received: _containers.ScalarMap[str, int]
    failure: str
    noise_digest: bytes
    witnessed: _release_pb2.LedgerHead
    def __init__(self, state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., received: _Optional[_Mapping[str, int]] = ..., failure: _Optional[str] = ..., noise_digest: _Optional[bytes] = ..., witnessed: _Optional[_Union[_release_pb2.LedgerHead, _Mapping]] = ...) -> None: ...

class WholeColumn(_message.Message):
    __slots__ = ("attribute", "data", "digest")
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    attribute: str
    data: bytes
    digest: bytes
    def __init__(self, attribute: _Optional[str] = ..., data: _Optional[bytes] = ..., digest: _Optional[bytes] = ...) -> None: ...

class UploadColumnsRequest(_message.Message):
    __slots__ = ("spec", "columns", "wait_milliseconds", "noise_digest", "ledger")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    NOISE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    spec: _release_pb2.TableSpec
    columns: _containers.RepeatedCompositeFieldContainer[WholeColumn]
    wait_milliseconds: int
    noise_digest: bytes
    ledger: _release_pb2.LedgerHead
    def __init__(self, spec: _Optional[_Union[_release_pb2.TableSpec, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[WholeColumn, _Mapping]]] = ..., wait_milliseconds: _Optional[int] = ..., noise_digest: _Optional[bytes] = ..., ledger: _Optional[_Union[_release_pb2.LedgerHead, _Mapping]] = ...) -> None: ...

class UploadColumnsResponse(_message.Message):
    __slots__ = ("publication",)
    PUBLICATION_FIELD_NUMBER: _ClassVar[int]
    publication: GetPublicationResponse
    def __init__(self, publication: _Optional[_Union[GetPublicationResponse, _Mapping]] = ...) -> None: ...

class UploadHeader(_message.Message):
    __slots__ = ("release_id", "attribute", "spec_digest", "column_digest", "noise_digest")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    SPEC_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COLUMN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NOISE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    attribute: str
    spec_digest: bytes
    column_digest: bytes
    noise_digest: bytes
    def __init__(self, release_id: _Optional[str] = ..., attribute: _Optional[str] = ..., spec_digest: _Optional[bytes] = ..., column_digest: _Optional[bytes] = ..., noise_digest: _Optional[bytes] = ...) -> None: ...

class UploadColumnRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: UploadHeader
    chunk: _release_pb2.Chunk
    def __init__(self, header: _Optional[_Union[UploadHeader, _Mapping]] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class UploadColumnResponse(_message.Message):
    __slots__ = ("received", "complete")
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    received: int
    complete: bool
    def __init__(self, received: _Optional[int] = ..., complete: bool = ...) -> None: ...

class GetPublicationRequest(_message.Message):
    __slots__ = ("release_id", "wait_milliseconds")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    wait_milliseconds: int
    def __init__(self, release_id: _Optional[str] = ..., wait_milliseconds: _Optional[int] = ...) -> None: ...

class GetPublicationResponse(_message.Message):
    __slots__ = ("state", "digests", "failure", "places_digest", "noise_digest", "waiting_for")
    class DigestsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PLACES_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NOISE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    state: _release_pb2.ReleaseState
    digests: _containers.ScalarMap[str, bytes]
    failure: str
    places_digest: bytes
    noise_digest: bytes
    waiting_for: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., digests: _Optional[_Mapping[str, bytes]] = ..., failure: _Optional[str] = ..., places_digest: _Optional[bytes] = ..., noise_digest: _Optional[bytes] = ..., waiting_for: _Optional[_Iterable[str]] = ...) -> None: ...

class FetchCanariesRequest(_message.Message):
    __slots__ = ("release_id", "places_key", "offset")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    PLACES_KEY_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    places_key: bytes
    offset: int
    def __init__(self, release_id: _Optional[str] = ..., places_key: _Optional[bytes] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchCanariesResponse(_message.Message):
    __slots__ = ("total", "chunk", "other_places_key", "other_sender")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    OTHER_PLACES_KEY_FIELD_NUMBER: _ClassVar[int]
    OTHER_SENDER_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    other_places_key: bytes
    other_sender: str
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ..., other_places_key: _Optional[bytes] = ..., other_sender: _Optional[str] = ...) -> None: ...
