"""What a process does without, though it is installed."""

import sys
from types import ModuleType

_ABSENT = ("pandas", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs")
_EMPTY = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")


class _Absent:
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in _ABSENT:
            raise ModuleNotFoundError(name=fullname)


def do_without_large_modules() -> None:
    """Let PyArrow find neither pandas nor file systems of clouds, and NumPy no help texts.

    Pandas, which it imports at the first value, takes a third of the time to start; the others take a twentieth. What
    was imported before stays.
    """
    sys.meta_path.insert(0, _Absent())
    sys.modules.update((name, ModuleType(name)) for name in _EMPTY)
