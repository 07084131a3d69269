"""A relay among parties that keep to its rules and parties that do not, by clients of the test's own."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from veiltab.common.command.parties import parties_of
from veiltab.common.errors import UnavailableError
from veiltab.common.relay.lines import ALPN, Streams
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.rpc.tls import tls_context
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.pki.certificates import init_pki, revoke_certificates
from veiltab.deploy.relay.limits import RelayLimits
from veiltab.deploy.relay.meeting_point import MeetingPoint
from veiltab.deploy.relay.serving import listening
from veiltab.play.studies.adult_tables import adult_study
from veiltab.play.studies.templates import relayed

BURST = 5


class Place:
    """A relay on this machine, and connections to it by the certificates of parties."""

    def __init__(self, folder: Path) -> None:
        study = study_from_bytes(relayed(adult_study(), "localhost:443"), "study.toml")
        self.study, self.pki = study, folder / "pki"
        self._folders = {party.name: path for party, path in init_pki(study, self.pki).items()}
        self._roles = {party.name: party.role for party in parties_of(study)}
        own = load_identity(self._folders["relay"], Role.RELAY, "relay")
        limits = RelayLimits(burst=BURST, minute=1.0, wait=0.5, handshake=5.0, pairs=3, between=2)
        self.point = MeetingPoint(own, list(parties_of(study)), limits)
        self.listener = listening("127.0.0.1:0")
        self.address = self.listener.getsockname()
        self.pid = 0
        self._opened: list[Streams] = []

    async def open(self, name: str | None) -> Streams:
        """Connect by a party's certificate; None has none."""
        if name is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        else:
            identity = load_identity(self._folders[name], self._roles[name], name)
            context = tls_context(identity, ALPN, is_server=False)
            context.check_hostname = False
        streams = Streams(*await asyncio.open_connection(*self.address, ssl=context))
        self._opened.append(streams)
        return streams

    async def end(self) -> None:
        """Close every connection."""
        for streams in self._opened:
            await streams.end()

    async def asked(self, name: str, line: str) -> tuple[Streams, str]:
        """Connect, say a line, and return the answer."""
        streams = await self.open(name)
        await streams.say(line)
        return streams, await streams.line()


@asynccontextmanager
async def placed(folder: Path) -> AsyncIterator[Place]:
    place = Place(folder)
    serving = asyncio.create_task(place.point.serve(place.listener))
    try:
        yield place
    finally:
        await place.end()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        place.listener.close()


async def paired(place: Place, name: str = "bob") -> tuple[Streams, Streams]:
    """Return both ends of a pair: Bob, or another party, calls Alice."""
    parked, said = await place.asked("alice", "PARK")
    assert said == "OK 25"
    calling = asyncio.create_task(place.asked(name, "CALL curator/alice"))
    while (line := await parked.line()) == "BEAT":
        await parked.say("BEAT")
    assert line.partition("/")[2] == name
    await parked.say("OK")
    assert (await calling)[1] == "OK"
    return calling.result()[0], parked


async def test_a_party_that_floods_costs_itself(tmp_path: Path) -> None:

    async with placed(tmp_path) as place:
        for _ in range(BURST):
            assert (await place.asked("rosa", "CALL curator/alice"))[1] == "curator alice has no connection here"
        with pytest.raises((AssertionError, OSError)):
            assert (await place.asked("rosa", "CALL curator/alice"))[1].startswith("curator")
        assert place.point.refusals["too many connections"] == 1
        caller, callee = await paired(place)
        caller.writer.write(b"x" * 100_000)
        assert await callee.reader.readexactly(100_000) == b"x" * 100_000


async def test_a_party_that_ends_no_pair_leaves_pairs_to_others(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        _kept = [await paired(place, "rosa") for _ in range(2)]
        assert (await place.asked("rosa", "CALL curator/alice"))[1].startswith("one of the two parties has too many")
        assert place.point.pairs(*2 * [one for one in place.point.parked if one.name == "alice"]) == 0
        await paired(place)


async def test_a_failure_that_nobody_foresaw_ends_its_own_connection_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with placed(tmp_path) as place:
        caller, callee = await paired(place)
        with monkeypatch.context() as patch:
            patch.setattr(place.point, "_serve", Mock(side_effect=RuntimeError))
            with pytest.raises(UnavailableError):
                await place.asked("rosa", "PARK")
        caller.writer.write(b"on")
        assert await callee.reader.readexactly(2) == b"on"
        assert (await place.asked("rosa", "PARK"))[1] == "OK 25"
    assert "a connection failed" in caplog.text


async def test_what_is_no_line_or_has_no_certificate_ends_and_a_pair_ends_with_either_side(tmp_path: Path) -> None:

    async with placed(tmp_path) as place:
        assert (await place.asked("rosa", "SUDO curator/alice"))[1] == "this line is not known here"
        assert (await place.asked("rosa", "CALL curator/nobody"))[1] == "the study has no such party"
        long = await place.open("rosa")
        long.writer.write(b"CALL " + b"a" * 200 + b"\n")
        assert await long.reader.read() == b""
        with pytest.raises((OSError, AssertionError)):
            assert await (await place.open(None)).reader.read() != b""
        caller, callee = await paired(place)
        callee.writer.write(b"last")
        await callee.end()
        assert await caller.reader.read() == b"last"
        assert place.point.refusals["no TLS with a certificate of the study"] == 1


@pytest.mark.parametrize("name", ["alice", "bob"])
async def test_a_revocation_cuts_open_pairs_and_what_waits(tmp_path: Path, name: str) -> None:

    async with placed(tmp_path) as place:
        caller, callee = await paired(place)
        parked, _ = await place.asked(name, "PARK")
        other, _ = await place.asked("rosa", "PARK")
        revoke_certificates(place.study, place.pki, party=Party(study=place.study.id, role=Role.CURATOR, name=name))
        async with asyncio.timeout(5):
            assert [await one.reader.read() for one in (caller, callee)] == [b"", b""]
            assert await parked.reader.read() == b""
        assert (await place.asked(name, "PARK"))[1] == "the certificate is revoked"
        assert not other.reader.at_eof()
        assert place.point.pairs() == 0
        assert {party.name for party, number in place.point.parked.items() if number} == {"rosa"}
