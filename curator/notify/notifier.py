"""Sends notices beside a curator's work: whatever a channel does, it delays no release and no other channel."""

import asyncio
import logging
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import partial

from veiltab.common.errors import UnavailableError
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.statuses import every
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.notify.channels import channels_of, send
from veiltab.curator.notify.events import EventSource
from veiltab.curator.notify.outbox import Outbox
from veiltab.curator.officer.notify_settings import NotifySettings
from veiltab.curator.records.store import CuratorStore

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 5.0


class Notifier:
    """Notices of one curator.

    Args:
        source: what may happen.
        outbox: what is to be sent.
    """

    def __init__(self, source: EventSource, outbox: Outbox) -> None:
        self._source = source
        self._outbox = outbox
        self._channels = channels_of(source.settings)

    async def run(self) -> None:
        """Put notices into the outbox and send them, until cancelled; each channel at its own pace."""
        again = partial(every, _LOOK_AGAIN_SECONDS, log=_log, what="notices cannot be made or sent")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(again(partial(asyncio.to_thread, self.note_events)))
            for name in self._channels:
                tasks.create_task(again(partial(self.send_due, name)))

    def note_events(self) -> None:
        """Put a notice about every event that has none into the outbox."""
        now = int(time.time())
        for notice in self._source.events(now, self._outbox.enabled_since(now)):
            self._outbox.add(notice, self._channels, now)

    async def send_due(self, channel: str) -> None:
        """Send what is due by a channel and still news, until it fails; then the others wait as well."""
        url, authority = self._channels[channel], self._source.settings.authority
        for delivery in self._outbox.due(channel, int(time.time())):
            notice = delivery.notice
            if not self._source.is_news(notice, int(time.time())):
                self._outbox.set_dropped(delivery)
                continue
            try:
                await send(channel, url, authority, notice.title, notice.body(delivery.number))
            except UnavailableError as error:
                _log.warning("a notice cannot be sent", extra={"reason": channel})
                self._outbox.set_failed(delivery, error.problem, int(time.time()))
                return
            self._outbox.set_sent(delivery, int(time.time()))


def notifier_of(  # noqa: PLR0913, PLR0917 - what may happen, and who wants to know it
    settings: NotifySettings,
    study: str,
    identity: Identity,
    store: CuratorStore,
    ledger: Ledger,
    waiting: Callable[[], AbstractSet[str]],
) -> Notifier:
    """Return what sends a curator's notices. The arguments are those of `EventSource`."""
    return Notifier(EventSource(study, identity, store, ledger, settings, waiting), Outbox(store.connection))
