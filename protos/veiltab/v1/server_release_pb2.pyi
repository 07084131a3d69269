from veiltab.v1 import access_pb2 as _access_pb2
from veiltab.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetReleaseRequest(_message.Message):
    __slots__ = ("release_id", "with_columns", "with_statement")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WITH_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    WITH_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    with_columns: bool
    with_statement: bool
    def __init__(self, release_id: _Optional[str] = ..., with_columns: bool = ..., with_statement: bool = ...) -> None: ...

class GetReleaseResponse(_message.Message):
    __slots__ = ("state", "spec", "waiting_for", "failure", "perturbation_seconds", "salt", "progress", "columns", "statement")
    class ColumnsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PERTURBATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    state: _release_pb2.ReleaseState
    spec: _release_pb2.TableSpec
    waiting_for: _containers.RepeatedScalarFieldContainer[str]
    failure: str
    perturbation_seconds: float
    salt: bytes
    progress: str
    columns: _containers.ScalarMap[str, bytes]
    statement: _release_pb2.SignedStatement
    def __init__(self, state: _Optional[_Union[_release_pb2.ReleaseState, str]] = ..., spec: _Optional[_Union[_release_pb2.TableSpec, _Mapping]] = ..., waiting_for: _Optional[_Iterable[str]] = ..., failure: _Optional[str] = ..., perturbation_seconds: _Optional[float] = ..., salt: _Optional[bytes] = ..., progress: _Optional[str] = ..., columns: _Optional[_Mapping[str, bytes]] = ..., statement: _Optional[_Union[_release_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class GetServerStatementRequest(_message.Message):
    __slots__ = ("release_id",)
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    def __init__(self, release_id: _Optional[str] = ...) -> None: ...

class GetServerStatementResponse(_message.Message):
    __slots__ = ("statement",)
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    statement: _release_pb2.SignedStatement
    def __init__(self, statement: _Optional[_Union[_release_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class FetchColumnRequest(_message.Message):
    __slots__ = ("release_id", "attribute", "offset")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    attribute: str
    offset: int
    def __init__(self, release_id: _Optional[str] = ..., attribute: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchPlacesRequest(_message.Message):
    __slots__ = ("release_id", "offset")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    offset: int
    def __init__(self, release_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchPlacesResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...

class FetchColumnResponse(_message.Message):
    __slots__ = ("total", "chunk")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    total: int
    chunk: _release_pb2.Chunk
    def __init__(self, total: _Optional[int] = ..., chunk: _Optional[_Union[_release_pb2.Chunk, _Mapping]] = ...) -> None: ...
