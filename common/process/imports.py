"""What a process does without, though it is installed."""

import sys

_ABSENT = ("pandas", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs")


class _Absent:
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in _ABSENT:
            raise ModuleNotFoundError(name=fullname)


def do_without_large_modules() -> None:
    """Let PyArrow find neither pandas, which takes a third of the time to start, nor file systems of clouds."""
    sys.meta_path.insert(0, _Absent())
