"""Optional packages: each belongs to an extra of pyproject.toml, and a refusal names the missing extra."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from veiltab.common.errors import InvalidInputError

EXTRAS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "adapt": frozenset({"scipy"}),
        "api": frozenset({"httptools", "matplotlib", "pandas", "starlette", "uvicorn"}),
        "console": frozenset({"httptools", "jinja2", "starlette", "uvicorn"}),
        "dask": frozenset({"distributed"}),
        "http": frozenset({"httptools", "starlette", "uvicorn"}),
        "metrics": frozenset({"prometheus_client"}),
        "notify": frozenset({"apprise"}),
        "otel": frozenset({"opentelemetry"}),
        "papers": frozenset({"dp_accounting", "matplotlib", "pandas", "scipy"}),
        "postgres": frozenset({"psycopg", "psycopg_pool"}),
        "researcher": frozenset({"matplotlib", "pandas"}),
        "tables": frozenset({"adbc_driver_manager", "adbc_driver_postgresql", "duckdb", "python_calamine"}),
    }
)
"""Extra -> the top-level modules that it brings and veiltab imports."""


@contextmanager
def importing(extra: str, purpose: str, *, where: str = "") -> Iterator[None]:
    """Turn a failed import of an extra's packages into a refusal that names the extra.

    Args:
        extra: one of EXTRAS.
        purpose: what the packages are for, such as "a picture".
        where: the option concerned, if there is one.

    Raises:
        InvalidInputError: a package of the extra is not installed.
    """
    packages = EXTRAS[extra]
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in packages:
            raise
        raise InvalidInputError(
            f"{purpose} needs the package {package}, which is not installed",
            where=where,
            remedy=f"pip install 'veiltab[{extra}]'.",
        ) from None
