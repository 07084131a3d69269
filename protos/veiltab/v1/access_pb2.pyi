from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_CURATOR: _ClassVar[Role]
    ROLE_SERVER: _ClassVar[Role]
    ROLE_RESEARCHER: _ClassVar[Role]
    ROLE_NODE: _ClassVar[Role]
    ROLE_ANALYST: _ClassVar[Role]
ROLE_UNSPECIFIED: Role
ROLE_CURATOR: Role
ROLE_SERVER: Role
ROLE_RESEARCHER: Role
ROLE_NODE: Role
ROLE_ANALYST: Role
CALLERS_FIELD_NUMBER: _ClassVar[int]
callers: _descriptor.FieldDescriptor
