"""The version of a computed point: a digest of everything that could change its numbers, and of nothing else."""

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import veiltab

_FIRST_PARTY = "veiltab."
_LIBRARIES = ("dp-accounting", "numpy", "scipy")
_ROOT = Path(veiltab.__file__).parents[1]
_LAYOUT = 1
"""Increased when the format of kept points changes."""


@lru_cache(maxsize=256)
def code_version(module: str) -> str:
    """Return a digest of a module's source, of all first-party sources it imports, and of the numerical libraries.

    A point that was kept before one of them changed is computed anew; pictures and pages may change meanwhile.

    Args:
        module: name of a module that is imported already.

    Returns:
        32 hexadecimal digits; the same in every process that would compute the same numbers.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr([_LAYOUT, *((name, version(name)) for name in _LIBRARIES)]).encode())
    for name, source in sorted(_sources(module).items()):
        digest.update(f"\n{name} {len(source)}\n".encode() + source)
    return digest.hexdigest()


def _sources(module: str) -> dict[str, bytes]:
    """Return the sources that a module is made of, by name, itself under the empty one."""
    start = sys.modules[module].__file__
    sources = {"": Path(str(start)).read_bytes()}
    waiting = list(_imports(sources[""]))
    while waiting:
        name = waiting.pop()
        if name in sources or (path := _path(name)) is None:
            continue
        sources[name] = path.read_bytes()
        waiting += _imports(sources[name])
    return sources


def _imports(source: bytes) -> Iterator[str]:
    """Yield the names of first-party modules that a source may import; some name a function of a module instead."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.startswith(_FIRST_PARTY))


def _path(name: str) -> Path | None:
    """Return where a first-party module lies, without importing it."""
    path = _ROOT.joinpath(*name.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
