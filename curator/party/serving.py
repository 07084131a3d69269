"""Runs a curator."""

import asyncio
import secrets
from contextlib import closing
from functools import partial
from pathlib import Path

from veiltab.common.command.cli import note
from veiltab.common.command.options import ServeOptions
from veiltab.common.command.parties import parties_in
from veiltab.common.command.run import serve_party
from veiltab.common.observe.sinks import observing
from veiltab.common.observe.steps import step
from veiltab.common.process.logs import log_to_stderr
from veiltab.common.rpc.parties.identity import Identity, Role
from veiltab.common.storage.files import OwnedFolder
from veiltab.common.study.file import load_study
from veiltab.common.tasks.engine import Engine
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.opening import file_of
from veiltab.curator.notify.events import EventSource
from veiltab.curator.notify.notifier import Notifier
from veiltab.curator.notify.outbox import Outbox
from veiltab.curator.officer.notify_settings import NotifySettings
from veiltab.curator.officer.policy import policy_of, policy_source
from veiltab.curator.officer.work_options import WorkOptions
from veiltab.curator.party.service import CuratorPeerServicer, CuratorServicer
from veiltab.curator.party.status import observe
from veiltab.curator.reading.table_reading import load_table
from veiltab.curator.records.served_files import ServedTable
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.table.table import Table
from veiltab.v1.curator_pb2_grpc import add_CuratorServiceServicer_to_server
from veiltab.v1.curator_peer_pb2_grpc import add_CuratorPeerServiceServicer_to_server

_CHECKED_AT_START = 1_000
"""Newest entries of the audit log that a process checks before it serves; `veiltab curator audit` checks all."""


def serve_curator(options: ServeOptions, *, table: TableAddress, policy_path: Path | None, work: WorkOptions) -> None:
    """Load the table and take part in releases until a signal stops the process."""
    log_to_stderr(verbose=options.verbose)
    study, identity = options.load(Role.CURATOR)
    policy = policy_of(study, options.name, policy_path)

    def check_files() -> None:
        policy_of(load_study(options.study_path), options.name, policy_path)

    callers = [party for party in parties_in(study, Role.CURATOR, Role.RESEARCHER) if party != identity.party]
    with (
        options.state() as path,
        OwnedFolder(path, identity.party.uri) as folder,
        closing(CuratorStore(folder.path / "curator.sqlite")) as store,
        work.workplace(folder.path, identity.party, study_authority=identity.authority) as workplace,
    ):
        ledger = Ledger(store.connection, policy.budget_within(study.budget_epsilon), study.budget_delta)
        store.audit.verify_newest(_CHECKED_AT_START)
        store.audit.verify_against(ledger.audit_heads)
        store.served.set_served_study(study)
        store.served.set_served_policy(policy_path, len(policy.rules), policy.budget, policy.persons, policy.digest)
        driver = CuratorDriver(identity, study, folder.path, store, ledger, policy, workplace)
        own = (
            partial(add_CuratorPeerServiceServicer_to_server, CuratorPeerServicer(driver)),
            partial(add_CuratorServiceServicer_to_server, CuratorServicer(driver)),
        )
        seen = partial(observe, driver)
        with observing(identity, seen, metrics=options.metrics, trace_file=options.trace_file) as status:
            file = _file_as_it_is(table)
            note(f"reading {table.shown}")
            with step("load table"):
                loaded = load_table(table, study, options.name, run=workplace.run)
            version = store.alignments.table_version(loaded.content_digest, secrets.token_hex(16))
            store.served.set_served_table(file, loaded.rows, version)
            note(f"table: {len(loaded.respondents)} respondents in {loaded.rows_read} rows; {loaded.description}")
            if file is not None and file.note:
                note(file.note)
            note(f"policy: {policy_source(policy_path, len(policy.rules))}")
            endpoint = study.curator(options.name).endpoint
            driving = partial(_work, driver, loaded, _notifier(driver, identity, policy.notify), workplace.engine)
            serve_party(options, identity, callers, [status, *own], endpoint, driving, check_files, driver.changes)


def _file_as_it_is(table: TableAddress) -> ServedTable | None:
    """Return the file of a table before it is read; None if it is not a single file, or cannot be looked at."""
    try:
        file = file_of(table)
        return None if file is None else ServedTable.of(file)
    except OSError:
        return None


async def _work(driver: CuratorDriver, table: Table, notifier: Notifier | None, engine: Engine) -> None:
    """Take part in releases, and send notices beside that if anybody wants them; end what the engine performs then."""
    beside = None if notifier is None else asyncio.create_task(notifier.run())
    try:
        await driver.run(table)
    finally:
        if beside is not None:
            beside.cancel()
        # A pass runs in a thread, for which the process would wait.
        engine.close()


def _notifier(driver: CuratorDriver, identity: Identity, settings: NotifySettings | None) -> Notifier | None:
    if settings is None:
        return None
    source = EventSource(
        study=driver.study.id,
        name=driver.name,
        identity=identity,
        store=driver.store,
        ledger=driver.ledger,
        settings=settings,
        held=lambda: driver.asks_a_person,
    )
    return Notifier(source, Outbox(driver.store.connection))
