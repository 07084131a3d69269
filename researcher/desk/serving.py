"""Runs a researcher's service."""

from contextlib import closing
from functools import partial

from veiltab.common.command.options import ServeOptions
from veiltab.common.command.parties import serving_parties
from veiltab.common.command.run import serve_party
from veiltab.common.command.running import serve_anew
from veiltab.common.observe.sinks import observing
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.storage.files import OwnedFolder
from veiltab.common.study.file import Study
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.desk.own_status import observe
from veiltab.researcher.desk.service import ResearcherServicer
from veiltab.researcher.records.store import ResearcherStore
from veiltab.v1.researcher_pb2_grpc import add_ResearcherServiceServicer_to_server


def serve_researcher(options: ServeOptions) -> None:
    """Carry requests to the curators, fetch and decrypt releases, keep results, until a signal stops the process."""
    study, identity = options.load(Role.RESEARCHER)
    serve_anew(partial(_serve, options, study), identity)


def _serve(options: ServeOptions, study: Study, identity: Identity) -> Identity | None:
    endpoint = serving_parties(study)[identity.party]
    analysts = [Party(study=study.id, role=Role.ANALYST, name=a.name) for a in study.analysts_of(identity.party.name)]
    with (
        options.state() as path,
        OwnedFolder(path, identity.party.uri) as folder,
        closing(ResearcherStore(folder.path, study)) as store,
    ):
        driver = ResearcherDriver(identity, study, store)
        own = partial(add_ResearcherServiceServicer_to_server, ResearcherServicer(driver))
        with observing(identity, partial(observe, driver), metrics=options.metrics) as status:
            callers = [identity.party, *analysts]
            work, changes = driver.run, driver.changes
            return serve_party(options, identity, callers, [status, own], endpoint, work, changes=changes)
