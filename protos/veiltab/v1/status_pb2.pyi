from veiltab.v1 import access_pb2 as _access_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("party", "version", "started", "certificate_ends", "work", "counts", "budgets", "queues")
    class QueuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PARTY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_ENDS_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    party: str
    version: str
    started: int
    certificate_ends: int
    work: _containers.RepeatedCompositeFieldContainer[Work]
    counts: _containers.RepeatedCompositeFieldContainer[WorkCount]
    budgets: _containers.RepeatedCompositeFieldContainer[BudgetLeft]
    queues: _containers.ScalarMap[str, int]
    def __init__(self, party: _Optional[str] = ..., version: _Optional[str] = ..., started: _Optional[int] = ..., certificate_ends: _Optional[int] = ..., work: _Optional[_Iterable[_Union[Work, _Mapping]]] = ..., counts: _Optional[_Iterable[_Union[WorkCount, _Mapping]]] = ..., budgets: _Optional[_Iterable[_Union[BudgetLeft, _Mapping]]] = ..., queues: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("kind", "id", "about", "state", "waiting_for", "since", "n", "matched")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    kind: str
    id: str
    about: str
    state: str
    waiting_for: str
    since: int
    n: int
    matched: int
    def __init__(self, kind: _Optional[str] = ..., id: _Optional[str] = ..., about: _Optional[str] = ..., state: _Optional[str] = ..., waiting_for: _Optional[str] = ..., since: _Optional[int] = ..., n: _Optional[int] = ..., matched: _Optional[int] = ...) -> None: ...

class WorkCount(_message.Message):
    __slots__ = ("kind", "state", "number")
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    kind: str
    state: str
    number: int
    def __init__(self, kind: _Optional[str] = ..., state: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class BudgetLeft(_message.Message):
    __slots__ = ("protects", "epsilon", "left", "delta", "left_delta")
    PROTECTS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    LEFT_DELTA_FIELD_NUMBER: _ClassVar[int]
    protects: str
    epsilon: str
    left: str
    delta: str
    left_delta: str
    def __init__(self, protects: _Optional[str] = ..., epsilon: _Optional[str] = ..., left: _Optional[str] = ..., delta: _Optional[str] = ..., left_delta: _Optional[str] = ...) -> None: ...
