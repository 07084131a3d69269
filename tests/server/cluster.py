"""A PostgreSQL of these tests' own, from Debian's package: in a temporary folder, on a Unix socket, soon removed."""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
_OWNER = "postgres"


def reason_to_skip() -> str:
    """Return why there can be no PostgreSQL here, or an empty text."""
    if not _PROGRAMS:
        return "Debian's package postgresql is not installed"
    if os.geteuid() == 0 and _OWNER not in {entry.pw_name for entry in pwd.getpwall()}:
        return f"PostgreSQL does not run as root, and there is no user {_OWNER}"
    return ""


class Cluster:
    """A database server; use it as a context manager."""

    def __init__(self) -> None:
        if reason := reason_to_skip():
            pytest.skip(reason)
        self.folder = Path(tempfile.mkdtemp(prefix="veiltab-postgres-"))
        self._numbers = itertools.count(1)
        self._as: tuple[str, ...] = ()
        if os.geteuid() == 0:
            shutil.chown(self.folder, _OWNER)
            # A command, not an argument of subprocess: that would fork this process, with gRPC's threads in it.
            self._as = ("setpriv", f"--reuid={_OWNER}", f"--regid={_OWNER}", "--init-groups")

    def _run(self, program: str, *arguments: str) -> None:
        # A file for the output: the server inherits it, and a pipe would stay open as long as it runs.
        with tempfile.TemporaryFile() as output:
            ended = subprocess.run(
                [*self._as, _PROGRAMS[-1].with_name(program), "-D", str(self.folder / "data"), *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=120,
                check=False,
            )
            output.seek(0)
            assert ended.returncode == 0, output.read().decode(errors="replace")

    def start(self) -> None:
        options = f"-k {self.folder} -h '' -c fsync=off -c shared_buffers=16MB -c log_min_messages=fatal"
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop the server as a crash does."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def __enter__(self) -> Self:
        try:
            self._run("initdb", "-U", "veiltab", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self.start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop and remove it."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder)

    def new_url(self) -> str:
        """Return the URL of an empty schema, which is as good as a database."""
        schema = f"s{next(self._numbers)}"
        self.ask(f"CREATE SCHEMA {schema}")
        return f"postgresql://veiltab@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def ask(self, statement: str) -> list[Any]:
        """Run a statement beside the product's."""
        with psycopg.connect(host=str(self.folder), user="veiltab", dbname="postgres", autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []
