"""What reports of nodes over HTTPS are answered: an ASGI application, into the store of the reports over gRPC.

    GET  /v1/rounds/ROUND_ID            what the round asks, and whether it is open
    POST /v1/rounds/ROUND_ID/reports    counts one report and spends its token

What admits a report is its token, as over gRPC, and the same `RoundKeeper` decides about both. A body is read only for
a round that is known here, and no further than a report of that round is long.
"""

import asyncio
import re
from contextlib import ExitStack

from starlette.requests import Request
from starlette.responses import Response

from veiltab.common.errors import DeniedError, UnavailableError
from veiltab.common.web.answering import SECONDS, Application, Places, RefusedError, body_of
from veiltab.server.https.json_messages import most_bytes, refusal_to_json, report_from_json, round_to_json
from veiltab.server.rounds.rounds import RoundKeeper

MOST_UNDER_WAY = 768
"""Whole requests at a time, as many as calls of all nodes over gRPC; further ones are answered 503."""

_PATH = re.compile(r"/v1/rounds/([^/]+)(/reports|/signed)?")


class Reports(Application):
    """Describes rounds and counts reports.

    Args:
        rounds: the server's part in rounds.
        seconds: longest that a request may take to arrive and to be answered.
        origin: of the one site whose pages may read the answers; those of every other are refused. Empty: nothing is
            said of origins, so that a browser shows the answers to pages of this address alone.
    """

    def __init__(self, rounds: RoundKeeper, seconds: float = SECONDS, origin: str = "") -> None:
        self._rounds, self._seconds, self._origin, self._places = rounds, seconds, origin, Places(MOST_UNDER_WAY)
        shared = {"Access-Control-Allow-Origin": origin, "Vary": "origin"} if origin else {}
        kind = {"Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}
        self.headers = {"Cache-Control": "no-store", **kind, **shared}

    async def answer(self, request: Request, resources: ExitStack) -> Response:
        """Answer a request of a program, or of a page of the site that may ask."""
        if self._origin and not set(request.headers.getlist("origin")) <= {self._origin}:
            raise DeniedError(
                "pages of this site may not report here", where="Origin", remedy="Ask the operator about allow-origin."
            )
        try:
            async with asyncio.timeout(self._seconds):
                return Response(await self._answered(request, resources))
        except TimeoutError:
            raise UnavailableError("the request took too long", remedy="Send it again.") from None

    def refused(self, request: Request, refusal: RefusedError) -> Response:  # noqa: ARG002 - of every application
        """Return a refusal; what is left of its request is not waited for."""
        return Response(refusal_to_json(refusal), refusal.status, {"Connection": "close"})

    async def _answered(self, request: Request, resources: ExitStack) -> bytes:
        path = _PATH.fullmatch(request.scope["path"])
        match request.method, path and path.groups():
            case "POST", (round_id, "/reports"):
                spec = await self._rounds.described(round_id)
                body = await body_of(request, most_bytes(spec.randomiser), seconds=None)
                resources.enter_context(self._places)  # one whose body has not come takes a connection alone
                one = report_from_json(body)
                await self._rounds.report(round_id, one.token, one.stratum, one.report)
                return b'{"counted": true}'
            case "GET" | "HEAD", (round_id, "/signed"):
                resources.enter_context(self._places)
                return (await asyncio.to_thread(self._rounds.signed, round_id)).encode()
            case "GET" | "HEAD", (round_id, None):
                resources.enter_context(self._places)
                return round_to_json(*await asyncio.to_thread(self._rounds.round, round_id))
            case _, at:
                status = 405 if at else 404
                raise RefusedError(status, "there is nothing here", "See docs/http-reports.md.", reason="NOT_FOUND")
