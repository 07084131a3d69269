"""Runs a curator."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.command.cli import note
from veiltab.common.command.options import ServeOptions
from veiltab.common.command.parties import parties_in
from veiltab.common.command.run import serve_party
from veiltab.common.command.running import serve_anew
from veiltab.common.observe.sinks import observing
from veiltab.common.rpc.parties.identity import Identity, Role
from veiltab.common.storage.files import OwnedFolder
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.officer.policy import policy_of, policy_source
from veiltab.curator.officer.work_options import WorkOptions
from veiltab.curator.party.served_table import load_served
from veiltab.curator.party.service import services_of
from veiltab.curator.party.status import observe
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.curator import Curator
from veiltab.curator.release.driver import CuratorDriver

if TYPE_CHECKING:
    from veiltab.curator.notify.notifier import Notifier

_CHECKED_AT_START = 1_000
"""Newest entries of the audit log that a process checks before it serves; `veiltab curator audit` checks all."""


def serve_curator(options: ServeOptions, *, table: TableAddress, policy_path: Path | None, work: WorkOptions) -> None:
    """Load the table and take part in releases until a signal stops the process."""
    study, identity = options.load(Role.CURATOR)

    def check_files() -> None:
        if (notices := policy_of(study, options.name, policy_path).notify) is not None:
            from veiltab.curator.notify.channels import channels_of  # noqa: PLC0415 - not where nobody wants notices

            channels_of(notices)

    def serve(identity: Identity) -> Identity | None:
        policy = policy_of(study, options.name, policy_path)
        ledger = Ledger(store.connection, policy.budget_within(study.budget_epsilon), study.budget_delta)
        store.audit.verify_against(ledger.chain.audit_heads)
        store.served.set_served_policy(policy_path, len(policy.rules), policy.budget, policy.persons, policy.digest)
        with work.execution(run, study_authority=identity.authority) as execution:
            curator = Curator(identity, study, folder.path, store, ledger, policy, execution)
            with observing(identity, partial(observe, curator), metrics=options.metrics) as status:
                work_on = partial(CuratorDriver(curator).run, loaded())
                note(f"policy: {policy_source(policy_path, len(policy.rules))}")
                notifier = None
                if policy.notify is not None:
                    from veiltab.curator.notify.notifier import notifier_of  # noqa: PLC0415 - not where nobody wants notices

                    waiting = lambda: curator.asks_a_person  # noqa: E731 - it changes
                    notifier = notifier_of(policy.notify, study.id, identity, store, ledger, waiting)
                own, endpoint = services_of(curator), study.curator(options.name).endpoint
                working = partial(_work, work_on, notifier, execution.engine.close)
                changes = curator.changes
                return serve_party(options, identity, callers, [status, *own], endpoint, working, check_files, changes)

    callers = [party for party in parties_in(study, Role.CURATOR, Role.RESEARCHER) if party != identity.party]
    with (
        options.state() as path,
        OwnedFolder(path, identity.party.uri) as folder,
        closing(CuratorStore(folder.path / "curator.sqlite")) as store,
        work.run(folder.path, identity.party) as run,
    ):
        store.audit.verify_newest(_CHECKED_AT_START)
        store.served.set_served_study(study)
        loaded = cache(partial(load_served, table, study, options.name, store, run))
        serve_anew(serve, identity)


async def _work(run: Callable[[], Awaitable[None]], notifier: "Notifier | None", close: Callable[[], None]) -> None:
    """Take part in releases, and send notices beside that if anybody wants them; end what the engine performs then."""
    beside = None if notifier is None else asyncio.create_task(notifier.run())
    try:
        await run()
    finally:
        if beside is not None:
            beside.cancel()
        # A pass runs in a thread, for which the process would wait.
        close()
