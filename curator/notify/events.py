"""What people are told about: read from the curator's state, so that nothing is missed and nothing is told twice.

A notice names the event, the study, the curator, the release, its researcher, and where to look. It has no purpose, no
attribute and no figure of a release.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from datetime import UTC
from decimal import Decimal

from cryptography import x509

from veiltab.common.dataclass import dataclass
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Identity
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.notify.outbox import Notice
from veiltab.curator.officer.notify_settings import Kind, NotifySettings
from veiltab.curator.records.store import CuratorStore

_SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class EventSource:
    """What may happen at one curator.

    Args:
        identity: its own.
        settings: what people want to know.
        requests_on_hold: returns the requests about which a person is to be asked.
    """

    study: str
    identity: Identity
    store: CuratorStore
    ledger: Ledger
    settings: NotifySettings
    requests_on_hold: Callable[[], AbstractSet[str]]

    def events(self, now: int, since: int) -> Iterator[Notice]:
        """Return what people are to be told now, some of it perhaps told before.

        Args:
            now: Unix seconds.
            since: when notices were first wanted; what was refused before is no news.
        """
        kinds = self.settings.events
        if Kind.HELD in kinds:
            for release_id in sorted(self.store.decisions.waiting_for_a_person(now) & self.requests_on_hold()):
                yield self._about(Kind.HELD, release_id, "a request waits for a person")
        if Kind.REFUSED in kinds:
            for release_id in self.store.releases.ended_since(ReleaseState.DENIED, since):
                yield self._about(Kind.REFUSED, release_id, "a request was refused")
        if Kind.BUDGET in kinds and self.ledger.budget.share >= self.settings.budget:
            yield self._spent()
        if Kind.CERTIFICATE in kinds:
            yield from self._certificates(now)

    def is_news(self, notice: Notice, now: int) -> bool:
        """Whether people still need a notice: what no longer waits for a person is not sent as if it did."""
        return notice.kind is not Kind.HELD or notice.subject in self.store.decisions.waiting_for_a_person(now)

    def _about(self, kind: Kind, release_id: str, text: str) -> Notice:
        researcher = self.store.releases.release(release_id).request.researcher
        look = "veiltab curator requests study.toml --state STATE"
        facts = self._facts(kind, text, look, release=release_id, researcher=researcher)
        return Notice(kind=kind, subject=release_id, facts=facts)

    def _spent(self) -> Notice:
        part = (100 * self.settings.budget).normalize()
        look = "veiltab curator ledger study.toml --state STATE"
        facts = self._facts(Kind.BUDGET, f"{part:f}% of the budget is spent", look)
        # Another budget, or another part of it, is another event.
        subject = f"{self.settings.budget.normalize()} of {Decimal(self.ledger.budget.epsilon).normalize()}"
        return Notice(kind=Kind.BUDGET, subject=subject, facts=facts)

    def _certificates(self, now: int) -> Iterator[Notice]:
        certificates = {
            f"the certificate of curator {self.identity.party.name}": self.identity.certificate,
            "the certificate of the study's authority": self.identity.authority,
        }
        for what, pem in certificates.items():
            for one in x509.load_pem_x509_certificates(pem):
                ends = one.not_valid_after_utc
                if ends.timestamp() - now < self.settings.certificate_days * _SECONDS_A_DAY:
                    text = f"{what} ends on {ends.astimezone(UTC):%Y-%m-%d}"
                    facts = self._facts(Kind.CERTIFICATE, text, "docs/operations/upgrade.md, renewal of certificates")
                    yield Notice(kind=Kind.CERTIFICATE, subject=f"{one.serial_number:x}", facts=facts)

    def _facts(self, kind: Kind, text: str, look: str, **more: str) -> dict[str, str]:
        return notice_facts(kind, self.study, self.identity.party.name, text, look, **more)


def notice_facts(kind: Kind, study: str, curator: str, text: str, look: str, **more: str) -> dict[str, str]:
    """Return the facts of a notice.

    Args:
        text: in words, without a full stop.
        look: what to run, to see more.
        more: what else is sent.
    """
    return {"event": kind.value, "study": study, "curator": curator, **more, "text": text, "look": look}
