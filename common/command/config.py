"""A party's configuration file: the options of its `serve`, in TOML.

    study = "study.toml"              # paths are relative to this file
    name = "alice"
    identity = "pki/curator-alice"
    state = "state"
    table = "alice.csv"               # curators: a file, a folder, a pattern, or postgresql://HOST/DATABASE
    query = "select id, sex from p"   # curators: what to read of a database
    encoding = "windows-1252"         # curators: of a text file whose beginning does not show it
    decimal = "comma"                 # curators: how numbers are written that may be read in two ways
    policy = "policy.toml"            # curators
    workers = 4                       # curators: processes that compute; by default one a core
    dask = "tls://10.0.0.5:8786"      # curators: a cluster that computes instead
    dask_identity = "cluster/client"  # curators: what proves to it who asks
    shared = "/mnt/veiltab"           # curators: a folder that the cluster's workers see, too
    retention_days = 30               # the server
    quota_releases = 256              # the server: releases that one curator may have open there
    quota_gib = 64                    # the server: GiB of all their columns together
    http = "0.0.0.0:7443"             # the server: reports of nodes over HTTPS
    http_certificate = "public.pem"   # the server: what their clients see
    http_key = "public.key"           # the server
    allow_origin = "https://a.org"    # the server: whose pages may report from a browser
    listen = "0.0.0.0:7401"
    proxy = "http://proxy.example.org:3128"  # as --proxy; proxy_user = "user" names the file of --proxy-user
    metrics = "127.0.0.1:9464"
    verbose = false

An option on the command line overrides the file, and so do VEILTAB_IDENTITY and VEILTAB_STATE; every key is optional.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import read_file
from veiltab.common.study.toml_fields import Fields
from veiltab.common.study.toml_text import parsed_toml_text

Value = str | int | bool | Path

_MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Key:
    """One key: the parameter of `serve` that it sets, and how to read it."""

    parameter: str
    read: Callable[[Fields, str, Path], Value]


def _path(fields: Fields, key: str, folder: Path) -> Path:
    text = fields.text(key)
    if not text.strip() or "\0" in text:
        raise fields.refuse(f"{key} names no file", "Give a path; one that is relative begins at this file's folder.")
    return folder / text


def _place(fields: Fields, key: str, folder: Path) -> Value:
    text = fields.text(key)
    return text if "://" in text else _path(fields, key, folder)


def _text(fields: Fields, key: str, _folder: Path) -> str:
    return fields.text(key)


def _days(fields: Fields, key: str, _folder: Path) -> int:
    days = fields.integer(key)
    if not 0 <= days <= _MOST_DAYS:
        raise fields.refuse(f"{key} is not between 0 and {_MOST_DAYS}", "30 is usual.")
    return days


def _whole(fields: Fields, key: str, _folder: Path, *, least: int) -> int:
    number = fields.integer(key)
    if number < least:
        raise fields.refuse(f"{key} is not a whole number from {least}", "Leave it out for the usual one.")
    return number


KEYS: Mapping[str, Key] = {
    "study": Key("study_path", _path),
    "name": Key("name", _text),
    "identity": Key("identity_folder", _path),
    "state": Key("state_folder", _path),
    "listen": Key("listen", _text),
    "table": Key("table_location", _place),
    "query": Key("query", _text),
    "encoding": Key("encoding", _text),
    "decimal": Key("decimal", _text),
    "policy": Key("policy_path", _path),
    "workers": Key("workers", partial(_whole, least=0)),
    "dask": Key("dask", _text),
    "dask_identity": Key("dask_identity", _path),
    "shared": Key("shared", _path),
    "retention_days": Key("retention_days", _days),
    "quota_releases": Key("quota_releases", partial(_whole, least=1)),
    "quota_gib": Key("quota_gib", partial(_whole, least=1)),
    "database": Key("database", _text),
    "http": Key("http_address", _text),
    "http_certificate": Key("http_certificate", _path),
    "http_key": Key("http_key", _path),
    "allow_origin": Key("allow_origin", _text),
    "proxy": Key("proxy", _text),
    "proxy_user": Key("proxy_user", _path),
    "metrics": Key("metrics", _text),
    "verbose": Key("verbose", lambda fields, key, _: fields.truth(key)),
}
"""Every key of a party's configuration file."""

ENVIRONMENT: Mapping[str, str] = {
    "identity": "VEILTAB_IDENTITY",
    "state": "VEILTAB_STATE",
    "database": "VEILTAB_DATABASE",
}
"""The environment variables that override the file: paths of secrets."""


def read_party_file(
    path: Path, keys: Collection[str] = tuple(KEYS)
) -> tuple[dict[str, Value], list[tuple[str, InvalidInputError]]]:
    """Read a party's file.

    Returns:
        What it says, by key, paths joined with the file's folder; and all that is wrong with it, each with its key.

    Raises:
        InvalidInputError: it cannot be read as TOML at all.
    """
    table = parsed_toml_text(read_file(path, "party's file", is_own=True), str(path))
    values: dict[str, Value] = {}
    problems: list[tuple[str, InvalidInputError]] = []
    for name, value in table.items():
        fields = Fields({name: value}, str(path))
        try:
            if name in keys:
                values[name] = KEYS[name].read(fields, name, path.parent)
            else:
                _refuse_unknown(name, fields, keys)
        except InvalidInputError as error:
            problems.append((name, error))
    return values, problems


def _refuse_unknown(name: str, fields: Fields, keys: Collection[str]) -> None:
    if name in KEYS:
        raise fields.refuse(f"{name} is not for this role", "Leave it out.")
    for key in keys:
        fields.holds(key, object)
    fields.finish()
