"""Options that the commands of a party share: study file, identity, state, address."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from veiltab.common.command.cli import PATH, listed, note
from veiltab.common.command.config import ENVIRONMENT, KEYS, read_party_file
from veiltab.common.command.parties import load_party
from veiltab.common.dataclass import dataclass, fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.process.logs import log_to_stderr
from veiltab.common.process.protection import keep_files_private
from veiltab.common.process.signals import end_at_interrupt
from veiltab.common.release.tables import Workload
from veiltab.common.rpc.parties.identity import Identity, Role
from veiltab.common.rpc.proxy import PROXY, ProxyOption
from veiltab.common.study.file import Study

study_argument = click.argument("study_path", metavar="STUDY.toml", type=PATH)
name_option = click.option("--name", required=True, help="This party's name in the study file.")
checked_name_option = click.option("--name", hidden=True, help="The party's name, if it is to be checked.")
_folder_option = functools.partial(click.option, required=True, type=PATH, show_envvar=True)
identity_option = _folder_option(
    "--identity",
    "identity_folder",
    envvar=ENVIRONMENT["identity"],
    help="Folder with ca.pem, NAME.pem and NAME.key, as `veiltab pki init` makes it.",
)
state_option = _folder_option(
    "--state", "state_folder", envvar=ENVIRONMENT["state"], help="Folder for this party's state."
)
NOISE_OPTIONS = (
    click.option(
        "--noise-split",
        metavar="S",
        help="The curators' part of the noise, 0 to below 1; the rest is the server's. By default as the study says.",
    ),
    click.option(
        "--max-pair-epsilon",
        help="Largest epsilon against the server with the desk, and against analysts with curators; costs accuracy.",
    ),
    click.option(
        "--canaries",
        type=click.IntRange(min=0),
        help="Rows that test the server; by default as the study says, or as many as the test needs.",
    ),
)
_TABLES_OPTIONS = (
    click.option(
        "--attributes",
        help="Attributes of one table, or of a --workload (by default all of the study), separated by commas.",
    ),
    click.option(
        "--tables",
        multiple=True,
        metavar="A,B [A,C ...]",
        help="Attributes of each of several tables; needs a --delta.",
    ),
    click.argument("more_tables", metavar="", nargs=-1),
    click.option(
        "--workload",
        type=click.Choice([one.value for one in Workload]),
        help="Tables of the --attributes: every pair; linked, the strongest again or every triple. Needs a --delta.",
    ),
)
repeats_option = click.option(
    "--repeats",
    type=click.IntRange(min=0),
    default=0,
    help="So many of the --tables may run a second time, chosen after the first results.",
)
listen_option = click.option(
    "--listen", metavar="HOST:PORT", help="Where to listen; by default all addresses, at the study file's port."
)


def _read_config(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Take defaults for the options from a party's configuration file."""
    if path is None:
        return
    parameters = {parameter.name for parameter in context.command.params} | {"proxy", "proxy_user"}
    values, problems = read_party_file(path, [name for name, key in KEYS.items() if key.parameter in parameters])
    for _, problem in problems[1:]:
        note(f"veiltab: {problem}")
    if problems:
        raise problems[0][1]
    named = {KEYS[name].parameter: value for name, value in values.items()}
    context.default_map = {**named, **(context.default_map or {})}
    if context.meta.get(PROXY) is None and (url := context.default_map.get("proxy")):
        context.meta[PROXY] = ProxyOption(url=url, user=context.default_map.get("proxy_user"))


_SERVE = (
    click.option(
        "--config",
        type=PATH,
        is_eager=True,
        expose_value=False,
        callback=_read_config,
        metavar="PARTY.toml",
        help="File with these options, STUDY.toml among them; options on the command line override it.",
    ),
    click.argument("study_path", metavar="[STUDY.toml]", type=PATH),
    name_option,
    identity_option,
    state_option,
    listen_option,
    click.option(
        "--metrics",
        metavar="HOST:PORT",
        help="Serve metrics for Prometheus; a PORT alone is the loopback interface's. Needs the extra metrics.",
    ),
    click.option("--verbose", is_flag=True, help="Log every step, not only refusals."),
    click.option("--check", is_flag=True, help="Start, up to listening, say what was found, and end; try the relay."),
)


def tables_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the choice of what is released: `attributes`, `tables` (names each) and `workload`."""

    @functools.wraps(command)
    def with_tables(
        *, attributes: str | None, tables: tuple[str, ...], more_tables: tuple[str, ...], **options: object
    ) -> None:
        if more_tables and not tables:
            raise click.UsageError(f"Got unexpected extra argument ({more_tables[0]})")
        command(
            attributes=listed(attributes) if attributes else (),
            tables=tuple(map(listed, (*tables, *more_tables))),
            **options,
        )

    for option in reversed(_TABLES_OPTIONS):
        with_tables = option(with_tables)
    return with_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of every party's `serve`; see the options of the same names."""

    study_path: Path
    name: str
    identity_folder: Path
    state_folder: Path
    listen: str | None
    metrics: str | None
    verbose: bool
    check: bool = False

    def load(self, role: Role) -> tuple[Study, Identity]:
        """Load the study, and the identity of the party of this role."""
        return load_party(self.study_path, self.identity_folder, role, name=self.name)

    def state(self) -> AbstractContextManager[Path]:
        """Give the state folder for a block; a check of a party that has none yet gets another for it."""
        if not self.check or self.state_folder.exists():
            return nullcontext(self.state_folder)
        from veiltab.common.command.checking import tried_folder  # noqa: PLC0415 - not for parties that serve

        return tried_folder(self.state_folder)


def serve_options(command: Callable[..., None]) -> Callable[..., None]:
    """Pass a command ServeOptions as its argument `options`; a configuration file may set each of them."""
    own = [field.name for field in fields(ServeOptions)]

    @functools.wraps(command)
    def with_options(**values: Any) -> None:  # noqa: ANN401 - whatever click read
        end_at_interrupt()
        keep_files_private()
        log_to_stderr(verbose=values["verbose"])
        command(options=ServeOptions(**{name: values.pop(name) for name in own}), **values)

    for option in reversed(_SERVE):
        with_options = option(with_options)
    return with_options


def wrong_name(party: str, name: str) -> InvalidInputError:
    """Return the refusal of a --name that a folder's party does not have."""
    return InvalidInputError(
        f"{party} is not that of {name!r}", where="--name", remedy="Give that party's folder, or leave --name out."
    )


def connected(
    argument: str, connect: Callable[[Path, Path], AbstractContextManager[object]]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Pass a command what its study file and identity connect to, while it runs.

    Args:
        argument: the command's argument that takes the connection.
        connect: makes it, of the study file and the identity folder.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @study_argument
        @checked_name_option
        @identity_option
        @functools.wraps(command)
        def with_connection(study_path: Path, identity_folder: Path, name: str | None, **options: object) -> None:
            if name is not None and not (identity_folder / f"{name}.pem").exists():
                raise wrong_name(f"the identity in {identity_folder}", name)
            with connect(study_path, identity_folder) as connection:
                command(**{argument: connection}, **options)

        return with_connection

    return decorated
