"""The links of a study without a common number: by which keys, how good by estimate, and what is linked now."""

from functools import partial

from markupsafe import Markup
from starlette.responses import Response

from veiltab.common.command.parties import serving_parties
from veiltab.common.errors import VeiltabError
from veiltab.common.observe.span_messages import status_from_proto
from veiltab.common.rpc.blocking import BlockingChannel
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.study.file import Study
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.alignment.joining.sessions import MOST_SESSIONS
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.linkage.linkage_text import ladder_picture, linkage_json, own_words, quality_lines
from veiltab.curator.linkage.linkages import Linkages
from veiltab.v1.status_pb2 import GetStatusRequest
from veiltab.v1.status_pb2_grpc import StatusServiceStub


def links_page(books: StateReader, identity: Identity | None) -> Page:
    """Return the page of the links; without an identity the service is not asked what it links now."""
    return Page(path="/links", label="Links", show=partial(_show, books, identity))


def _show(books: StateReader, identity: Identity | None, visit: Visit) -> Response:
    own_state = books.own_state
    store, (categories, lacking, unlike) = own_state.store, own_words(own_state.study, own_state.name)
    report = Linkages(store.connection, store.audit).latest_report()
    return visit.render(
        "links.html",
        report=report,
        facts=None if report is None else linkage_json(report, categories, lacking, unlike),
        quality=() if report is None else tuple(quality_lines(report, unlike, lacking)),
        picture=Markup() if report is None else ladder_picture(report),
        sessions=store.joins.sessions_of(),
        most_sessions=MOST_SESSIONS,
        suspects=store.joins.failed_with(),
        now="" if identity is None else _now(own_state.study, identity),
    )


def _now(study: Study, identity: Identity) -> str:
    """Return what the running service says of its alignment, or why it says nothing."""
    own = identity.party
    channel = BlockingChannel(lambda: connect(identity, own, serving_parties(study)[own]))
    try:
        answer = call(StatusServiceStub(channel.channel).GetStatus, GetStatusRequest(), peer=own, once=True)
        status = status_from_proto(channel.wait(answer))
    except VeiltabError as error:
        return str(error)
    finally:
        channel.close()
    works = (one for one in status.observation.work if one.kind == "alignment")
    return next((f"{one.state}: {one.waiting_for or one.about}" for one in works), "")
