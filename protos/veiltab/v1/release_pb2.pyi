from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SamplingMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SAMPLING_MODE_UNSPECIFIED: _ClassVar[SamplingMode]
    SAMPLING_MODE_SEED: _ClassVar[SamplingMode]
    SAMPLING_MODE_INDICES: _ClassVar[SamplingMode]
    SAMPLING_MODE_SERVER: _ClassVar[SamplingMode]

class PadKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PAD_KIND_UNSPECIFIED: _ClassVar[PadKind]
    PAD_KIND_CHACHA20: _ClassVar[PadKind]
    PAD_KIND_OTP: _ClassVar[PadKind]

class Scheme(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCHEME_UNSPECIFIED: _ClassVar[Scheme]
    SCHEME_WOR: _ClassVar[Scheme]
    SCHEME_POISSON: _ClassVar[Scheme]
    SCHEME_WR: _ClassVar[Scheme]
    SCHEME_MUST_OW: _ClassVar[Scheme]
    SCHEME_MUST_WO: _ClassVar[Scheme]
    SCHEME_MUST_WW: _ClassVar[Scheme]

class ReleaseState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RELEASE_STATE_UNSPECIFIED: _ClassVar[ReleaseState]
    RELEASE_STATE_REQUESTED: _ClassVar[ReleaseState]
    RELEASE_STATE_APPROVED: _ClassVar[ReleaseState]
    RELEASE_STATE_PLANNED: _ClassVar[ReleaseState]
    RELEASE_STATE_CHARGED: _ClassVar[ReleaseState]
    RELEASE_STATE_UPLOADING: _ClassVar[ReleaseState]
    RELEASE_STATE_PERTURBING: _ClassVar[ReleaseState]
    RELEASE_STATE_READY: _ClassVar[ReleaseState]
    RELEASE_STATE_EXPIRED: _ClassVar[ReleaseState]
    RELEASE_STATE_DENIED: _ClassVar[ReleaseState]
    RELEASE_STATE_FAILED: _ClassVar[ReleaseState]
SAMPLING_MODE_UNSPECIFIED: SamplingMode
SAMPLING_MODE_SEED: SamplingMode
SAMPLING_MODE_INDICES: SamplingMode
SAMPLING_MODE_SERVER: SamplingMode
PAD_KIND_UNSPECIFIED: PadKind
PAD_KIND_CHACHA20: PadKind
PAD_KIND_OTP: PadKind
SCHEME_UNSPECIFIED: Scheme
SCHEME_WOR: Scheme
SCHEME_POISSON: Scheme
SCHEME_WR: Scheme
SCHEME_MUST_OW: Scheme
SCHEME_MUST_WO: Scheme
SCHEME_MUST_WW: Scheme
RELEASE_STATE_UNSPECIFIED: ReleaseState
RELEASE_STATE_REQUESTED: ReleaseState
RELEASE_STATE_APPROVED: ReleaseState
RELEASE_STATE_PLANNED: ReleaseState
RELEASE_STATE_CHARGED: ReleaseState
RELEASE_STATE_UPLOADING: ReleaseState
RELEASE_STATE_PERTURBING: ReleaseState
RELEASE_STATE_READY: ReleaseState
RELEASE_STATE_EXPIRED: ReleaseState
RELEASE_STATE_DENIED: ReleaseState
RELEASE_STATE_FAILED: ReleaseState

class ReleaseRequest(_message.Message):
    __slots__ = ("release_id", "attributes", "epsilon", "purpose", "deadline", "partial", "sampling", "pad", "sample", "delta", "max_local_epsilon", "scheme", "stage", "noise_split", "max_pair_epsilon", "canaries", "tables", "repeats")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    MAX_LOCAL_EPSILON_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    NOISE_SPLIT_FIELD_NUMBER: _ClassVar[int]
    MAX_PAIR_EPSILON_FIELD_NUMBER: _ClassVar[int]
    CANARIES_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    attributes: _containers.RepeatedScalarFieldContainer[str]
    epsilon: str
    purpose: str
    deadline: int
    partial: bool
    sampling: SamplingMode
    pad: PadKind
    sample: int
    delta: str
    max_local_epsilon: str
    scheme: Scheme
    stage: int
    noise_split: str
    max_pair_epsilon: str
    canaries: int
    tables: _containers.RepeatedCompositeFieldContainer[Table]
    repeats: int
    def __init__(self, release_id: _Optional[str] = ..., attributes: _Optional[_Iterable[str]] = ..., epsilon: _Optional[str] = ..., purpose: _Optional[str] = ..., deadline: _Optional[int] = ..., partial: bool = ..., sampling: _Optional[_Union[SamplingMode, str]] = ..., pad: _Optional[_Union[PadKind, str]] = ..., sample: _Optional[int] = ..., delta: _Optional[str] = ..., max_local_epsilon: _Optional[str] = ..., scheme: _Optional[_Union[Scheme, str]] = ..., stage: _Optional[int] = ..., noise_split: _Optional[str] = ..., max_pair_epsilon: _Optional[str] = ..., canaries: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[Table, _Mapping]]] = ..., repeats: _Optional[int] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("attributes",)
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    attributes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, attributes: _Optional[_Iterable[str]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("attribute", "owner", "size", "others")
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    attribute: str
    owner: str
    size: int
    others: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, attribute: _Optional[str] = ..., owner: _Optional[str] = ..., size: _Optional[int] = ..., others: _Optional[_Iterable[str]] = ...) -> None: ...

class TableSpec(_message.Message):
    __slots__ = ("release_id", "study_digest", "researcher", "columns", "population", "sample", "server_replacement", "epsilon", "scheme", "sampling", "pad", "alignment", "deadline", "delta", "stage", "curator_replacement", "canaries", "part_of")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESEARCHER_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    SERVER_REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    CURATOR_REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    CANARIES_FIELD_NUMBER: _ClassVar[int]
    PART_OF_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    study_digest: str
    researcher: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    population: int
    sample: int
    server_replacement: bytes
    epsilon: str
    scheme: Scheme
    sampling: SamplingMode
    pad: PadKind
    alignment: str
    deadline: int
    delta: str
    stage: int
    curator_replacement: bytes
    canaries: int
    part_of: str
    def __init__(self, release_id: _Optional[str] = ..., study_digest: _Optional[str] = ..., researcher: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., population: _Optional[int] = ..., sample: _Optional[int] = ..., server_replacement: _Optional[bytes] = ..., epsilon: _Optional[str] = ..., scheme: _Optional[_Union[Scheme, str]] = ..., sampling: _Optional[_Union[SamplingMode, str]] = ..., pad: _Optional[_Union[PadKind, str]] = ..., alignment: _Optional[str] = ..., deadline: _Optional[int] = ..., delta: _Optional[str] = ..., stage: _Optional[int] = ..., curator_replacement: _Optional[bytes] = ..., canaries: _Optional[int] = ..., part_of: _Optional[str] = ...) -> None: ...

class TablePlan(_message.Message):
    __slots__ = ("columns", "server_replacement", "curator_replacement", "canaries")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SERVER_REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    CURATOR_REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    CANARIES_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedScalarFieldContainer[int]
    server_replacement: bytes
    curator_replacement: bytes
    canaries: int
    def __init__(self, columns: _Optional[_Iterable[int]] = ..., server_replacement: _Optional[bytes] = ..., curator_replacement: _Optional[bytes] = ..., canaries: _Optional[int] = ...) -> None: ...

class ReleaseSpec(_message.Message):
    __slots__ = ("release_id", "study_digest", "researcher", "columns", "population", "sample", "epsilon", "delta", "scheme", "sampling", "pad", "alignment", "deadline", "tables", "repeated_tables", "repeats", "stage", "several")
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    STUDY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESEARCHER_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    REPEATED_TABLES_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SEVERAL_FIELD_NUMBER: _ClassVar[int]
    release_id: str
    study_digest: str
    researcher: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    population: int
    sample: int
    epsilon: str
    delta: str
    scheme: Scheme
    sampling: SamplingMode
    pad: PadKind
    alignment: str
    deadline: int
    tables: _containers.RepeatedCompositeFieldContainer[TablePlan]
    repeated_tables: _containers.RepeatedCompositeFieldContainer[TablePlan]
    repeats: int
    stage: int
    several: bool
    def __init__(self, release_id: _Optional[str] = ..., study_digest: _Optional[str] = ..., researcher: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., population: _Optional[int] = ..., sample: _Optional[int] = ..., epsilon: _Optional[str] = ..., delta: _Optional[str] = ..., scheme: _Optional[_Union[Scheme, str]] = ..., sampling: _Optional[_Union[SamplingMode, str]] = ..., pad: _Optional[_Union[PadKind, str]] = ..., alignment: _Optional[str] = ..., deadline: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[TablePlan, _Mapping]]] = ..., repeated_tables: _Optional[_Iterable[_Union[TablePlan, _Mapping]]] = ..., repeats: _Optional[int] = ..., stage: _Optional[int] = ..., several: bool = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("curator", "canaries", "expected", "sd", "passed", "text")
    CURATOR_FIELD_NUMBER: _ClassVar[int]
    CANARIES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    SD_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    curator: str
    canaries: int
    expected: str
    sd: str
    passed: bool
    text: str
    def __init__(self, curator: _Optional[str] = ..., canaries: _Optional[int] = ..., expected: _Optional[str] = ..., sd: _Optional[str] = ..., passed: bool = ..., text: _Optional[str] = ...) -> None: ...

class SignedStatement(_message.Message):
    __slots__ = ("text", "signature", "certificate")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    text: str
    signature: bytes
    certificate: bytes
    def __init__(self, text: _Optional[str] = ..., signature: _Optional[bytes] = ..., certificate: _Optional[bytes] = ...) -> None: ...

class LedgerHead(_message.Message):
    __slots__ = ("length", "head")
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    length: int
    head: bytes
    def __init__(self, length: _Optional[int] = ..., head: _Optional[bytes] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("offset", "data", "digest")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    digest: bytes
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ..., digest: _Optional[bytes] = ...) -> None: ...
