"""Which pages the console of a researcher or an analyst has."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veiltab.common.process.protection import keep_files_private
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.web.pages import Console, Page
from veiltab.common.web.serving import serve_console
from veiltab.researcher.client.client import Client
from veiltab.researcher.console.desk import Desk
from veiltab.researcher.console.pages.microdata_pages import MicrodataPages
from veiltab.researcher.console.pages.planning_pages import PlanningPages
from veiltab.researcher.console.pages.release_pages import ReleasePages
from veiltab.researcher.console.pages.table_pages import TablePages
from veiltab.researcher.console.writing import Writer

_log = logging.getLogger(__name__)


class LogJournal:
    """Records sessions in the log of the console; there is one person, who decides nothing for others."""

    def session_began(self, person: str, decides: bool) -> None:  # noqa: FBT001 - of every journal
        """Record that a session began."""
        del person, decides
        _log.info("a session began")

    def session_ended(self, person: str, reason: str) -> None:
        """Record that a session is over, and why."""
        del person
        _log.info("a session ended", extra={"reason": reason})


@contextmanager
def console_of(client: Client) -> Iterator[Console]:
    """Return the console of a client's researcher or analyst; its work ends and its files go with the block.

    An analyst has no page that asks for a release.
    """
    desk, writer = Desk(client), Writer()
    releases, tables = ReleasePages(desk), TablePages(desk)
    planning, microdata = PlanningPages(desk), MicrodataPages(desk, writer)
    one = "/releases/{release}"
    asking = (Page(path="/ask", label="Ask for a release", show=planning.show_ask, act=planning.ask),)
    role = "Analyst" if client.party.role is Role.ANALYST else "Researcher"
    try:
        yield Console(
            title=f"{role} {client.party.name}",
            study=desk.study.title,
            folder=Path(__file__).parent,
            pages=(
                Page(path="/", label="Releases", show=releases.show_all),
                Page(path="/plan", label="Planning", show=planning.show_plan),
                *(asking if desk.may_ask else ()),
                Page(path=one, show=releases.show),
                Page(path=f"{one}/table", show=tables.show),
                Page(path=f"{one}/table/{{kind}}", show=tables.download),
                Page(path=f"{one}/report.html", show=tables.download_report),
                Page(path=f"{one}/certificate", show=releases.download_certificate),
                Page(path=f"{one}/study.toml", show=releases.download_study),
                Page(path=f"{one}/microdata", show=microdata.show, act=microdata.act),
                Page(path="/files/{name}", show=microdata.download),
            ),
            journal=LogJournal(),
        )
    finally:
        desk.close()
        writer.close()


def run_console(client: Client, *, port: int, as_json: bool) -> None:
    """Serve the console of a client's party until a signal stops it.

    Args:
        client: of the researcher, or of an analyst.
        port: of the loopback interface; 0 takes a free one.
        as_json: whether the link is printed as JSON.
    """
    keep_files_private()
    with console_of(client) as console:
        serve_console(console, {client.party.name: True}, port=port, as_json=as_json)
