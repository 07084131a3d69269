"""Checks a party's configuration file for everything that `serve` would refuse, without starting the party.

The check changes and sends nothing. It gathers all problems; each names the file, the key and the fix.
"""

import fcntl
import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from veiltab.common.command.config import ENVIRONMENT, KEYS, Value, read_party_file
from veiltab.common.command.options import listen_address
from veiltab.common.command.parties import serving_parties
from veiltab.common.errors import InvalidInputError, VeiltabError
from veiltab.common.extras import importing
from veiltab.common.observe.sinks import is_loopback, loopback_address
from veiltab.common.rpc.address import check_bindable
from veiltab.common.rpc.parties.identity import Clock, Party, Role, load_identity, read_identity_file, utc_now
from veiltab.common.storage.files import check_owner
from veiltab.common.study.file import Study, read_file, study_from_bytes
from veiltab.common.study.problems import study_problems
from veiltab.common.tasks.engine_options import EngineOptions
from veiltab.curator import cli as curator_cli
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.officer.policy import policy_of, policy_source
from veiltab.curator.officer.work_options import WorkOptions
from veiltab.curator.reading.table_reading import read_table
from veiltab.researcher import cli as researcher_cli
from veiltab.server import cli as server_cli
from veiltab.server.https.http_options import http_options

_SOON_DAYS = 30
_SERVE = {Role.CURATOR: curator_cli.serve, Role.SERVER: server_cli.serve, Role.RESEARCHER: researcher_cli.serve}
_OF_EVERY_PARTY = ("study", "name", "identity", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of the file.

    Args:
        key: of the party's file.
        problem: what is wrong.
        where: the file, table or variable that is wrong.
        fix: what to do.
    """

    key: str
    problem: str
    where: str
    fix: str


@dataclass(slots=True, kw_only=True)
class Findings:
    """The result of a check.

    Args:
        path: the party's file.
        party: whose file it is; None if the file does not say so.
        problems: what keeps the party from serving.
        notes: what is right, and what deserves attention.
    """

    path: Path
    party: Party | None = None
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, key: str, problem: str, fix: str, where: str = "") -> None:
        """Record a problem."""
        self.problems.append(Problem(key=key, problem=problem, where=where or str(self.path), fix=fix))

    @contextmanager
    def about(self, key: str) -> Iterator[None]:
        """Record a refusal inside the block as a problem of a key."""
        try:
            yield
        except VeiltabError as error:
            self.add(key, error.problem, error.remedy or "Correct it there.", error.where)
        except OSError as error:
            self.add(key, f"it cannot be used ({error.strerror})", "Check the path and its permissions.")


def check_party(path: Path, *, environment: Mapping[str, str] | None = None, clock: Clock = utc_now) -> Findings:
    """Check a party's file and all that it names.

    Args:
        path: the file.
        environment: environment with VEILTAB_IDENTITY and VEILTAB_STATE; the process's by default.
        clock: source of the present.
    """
    findings = Findings(path=path)
    try:
        values, wrong = read_party_file(path)
    except InvalidInputError as error:
        findings.add("", error.problem, error.remedy, error.where)
        return findings
    for key, refusal in wrong:
        findings.add(key, refusal.problem, refusal.remedy, refusal.where)
    _override(values, os.environ if environment is None else environment, findings)
    said = {*values, *(key for key, _ in wrong)}
    for key in _OF_EVERY_PARTY:
        if key not in said:
            _add_missing(key, findings)
    study = _study(values, findings)
    if study is not None and "name" in values:
        _check_for(study, values, said, findings, clock)
    return findings


def _override(values: dict[str, Value], environment: Mapping[str, str], findings: Findings) -> None:
    for key, name in ENVIRONMENT.items():
        if environment.get(name):
            values[key] = Path(environment[name])
            findings.notes.append(f"{key}: from the environment variable {name}")


def _study(values: Mapping[str, Value], findings: Findings) -> Study | None:
    if "study" not in values:
        return None
    path = Path(str(values["study"]))
    with findings.about("study"):
        data = read_file(path, is_own=True)
        problems = study_problems(data)
        for problem in problems:
            line = f", line {problem.line}" if problem.line else ""
            findings.add("study", problem.problem, problem.remedy, f"{path} {problem.where}".rstrip() + line)
        return None if problems else study_from_bytes(data, str(path))
    return None


def _check_for(study: Study, values: Mapping[str, Value], said: set[str], findings: Findings, clock: Clock) -> None:
    """Check the settings that depend on the party."""
    name = str(values["name"])
    serving = serving_parties(study)
    # Names are unique among all parties of a study.
    party = findings.party = next((one for one in serving if one.name == name), None)
    if party is None:
        known = [one.name for one in serving]
        findings.add("name", f"no party {name[:60]!r} of the study serves", f"Known: {', '.join(known)}.")
        return
    findings.notes.append(f"study: {study.id}, with {party}")
    _check_options(values, said, party, findings)
    _check_identity(values, study, party, findings, clock)
    runs = _check_state(values, party, findings)
    if party.role is Role.CURATOR:
        _check_curator(values, said, study, party, findings)
    _check_addresses(values, serving[party], findings, runs=runs)
    _check_http(values, party, findings)
    _check_trace_file(values, findings)


def _check_options(values: Mapping[str, Value], said: set[str], party: Party, findings: Findings) -> None:
    """Check the keys against the options of the party's `serve`."""
    options = {parameter.name: parameter for parameter in _SERVE[party.role].params}
    for key in KEYS:
        option = options.get(KEYS[key].parameter)
        if option is None and key in said:
            findings.add(key, f"{key} is not for a {party.role.value}", "Leave it out.")
        elif option is not None and option.required and key not in {*said, *_OF_EVERY_PARTY}:
            _add_missing(key, findings)
        elif option is not None and key in values:
            try:
                option.type.convert(values[key], option, None)
            except click.BadParameter as error:
                findings.add(key, error.message.rstrip("."), "Correct it there.")


def _add_missing(key: str, findings: Findings) -> None:
    findings.add(key, f"{key} is missing", f"Add {key}, or give it to `serve` as an option.")


def _check_identity(values: Mapping[str, Value], study: Study, party: Party, findings: Findings, clock: Clock) -> None:
    if "identity" not in values:
        return
    with findings.about("identity"):
        identity = load_identity(Path(str(values["identity"])), party.role, party.name, study=study.id, clock=clock)
        days = (identity.stated.not_after - clock()).days
        soon = f"; renew it with `veiltab pki issue --party {party.role.value}/{party.name}`"
        findings.notes.append(f"identity: the certificate is valid for {days} days{soon if days < _SOON_DAYS else ''}")


def _check_state(values: Mapping[str, Value], party: Party, findings: Findings) -> bool:
    """Check the state folder; return whether a process runs on it."""
    if "state" not in values:
        return False
    folder = Path(str(values["state"]))
    with findings.about("state"):
        present = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        if not present.is_dir() or not os.access(present, os.W_OK | os.X_OK):
            raise InvalidInputError(
                "this is no folder that can be written",
                where=str(present),
                remedy="Give another folder, or change its permissions.",
            )
        check_owner(folder, party.uri)
        if _is_locked(folder / "lock"):
            findings.notes.append("state: a process runs on this folder now, so addresses are not tried")
            return True
        findings.notes.append("state: this party's" if folder.exists() else "state: the folder is made at the start")
    return False


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _check_curator(values: Mapping[str, Value], said: set[str], study: Study, party: Party, findings: Findings) -> None:
    if "table" in values:
        with findings.about("table"):
            details = {key: str(values[key]) for key in ("query", "encoding", "decimal") if key in values}
            table = TableAddress(location=str(values["table"]), **details)
            reading = read_table(table, study, party.name)
            for error in reading.errors:
                findings.add("table", error.problem, error.remedy, error.where)
            if not reading.errors:
                findings.notes.append(
                    f"table: {len(reading.respondents)} respondents in {reading.rows_read} rows; {reading.description}"
                )
    if "policy" in values:
        with findings.about("policy"):
            path = Path(str(values["policy"]))
            rules = policy_of(study, party.name, path).rules
            findings.notes.append(f"policy: {policy_source(path, len(rules))}")
    elif "policy" not in said:
        findings.notes.append(f"policy: {policy_source(None, 0)}")
    _check_work(values, findings)


def _check_work(values: Mapping[str, Value], findings: Findings) -> None:
    """Check what is to compute; a cluster is not called."""
    identity = _path(values, "identity")
    with findings.about("dask"):
        engine = EngineOptions(
            workers=int(str(values["workers"])) if "workers" in values else None,
            dask=_text(values, "dask"),
            dask_identity=_path(values, "dask_identity"),
        )
        work = WorkOptions(engine=engine, shared=_path(values, "shared"))
        if work.shared is not None and identity is not None:
            engine.engine(study_authority=read_identity_file(identity / "ca.pem")).close()
            findings.notes.append(f"dask: {engine.dask}, with files in {work.shared}")


def _check_http(values: Mapping[str, Value], party: Party, findings: Findings) -> None:
    """Check the certificate that clients see who report over HTTPS."""
    identity = _path(values, "identity")
    with findings.about("http"):
        http = http_options(_text(values, "http"), _path(values, "http_certificate"), _path(values, "http_key"))
        if http is None or identity is None:
            return
        with importing("http", "taking reports over HTTPS"):
            from veiltab.server.https.http import server_tls  # noqa: PLC0415 - optional packages
        server_tls(*http.files(identity, party.name))


def _text(values: Mapping[str, Value], key: str) -> str | None:
    return str(values[key]) if key in values else None


def _path(values: Mapping[str, Value], key: str) -> Path | None:
    return Path(str(values[key])) if key in values else None


def _check_addresses(values: Mapping[str, Value], endpoint: str, findings: Findings, *, runs: bool) -> None:
    address = listen_address(_text(values, "listen"), endpoint)
    with findings.about("listen"):
        check_bindable(address, tried=not runs)
        findings.notes.append(f"listen: {address}")
    if "http" in values:
        with findings.about("http"):
            host, port = loopback_address(str(values["http"]), "--http")
            check_bindable(_joined(host, port), tried=not runs)
            findings.notes.append(f"http: {host}:{port}, for clients without a certificate")
    if "metrics" not in values:
        return
    with findings.about("metrics"):
        host, port = loopback_address(str(values["metrics"]), "--metrics")
        check_bindable(_joined(host, port), tried=not runs)
        beyond = "" if is_loopback(host) else ", BEYOND this machine, without TLS, to whoever asks"
        findings.notes.append(f"metrics: {host}:{port}{beyond}")
    with findings.about("metrics"), importing("metrics", "serving metrics"):
        importlib.import_module("prometheus_client")


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check_trace_file(values: Mapping[str, Value], findings: Findings) -> None:
    if "trace_file" not in values:
        return
    path = Path(str(values["trace_file"]))
    writable = os.access(path, os.W_OK) and path.is_file() if path.exists() else os.access(path.parent, os.W_OK)
    if not writable:
        findings.add("trace_file", "the file cannot be written", "Give a file in an existing folder.", str(path))
