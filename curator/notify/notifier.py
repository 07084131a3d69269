"""Sends notices beside a curator's work: whatever a channel does, it delays no release and no other channel."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial

from veiltab.common.errors import UnavailableError
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.statuses import failures_logged
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.notify.channels import Send, channels_of
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
        self._channels: Mapping[str, Send] = channels_of(source.settings)

    async def run(self) -> None:
        """Put notices into the outbox and send them, until cancelled; each channel at its own pace."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_again(lambda: asyncio.to_thread(self.note_events)))
            for name in self._channels:
                tasks.create_task(_again(partial(self.send_due, name)))

    def note_events(self) -> None:
        """Put a notice about every event that has none into the outbox."""
        now = int(time.time())
        for event in self._source.events(now, self._outbox.enabled_since(now)):
            if not self._outbox.knows(event.kind, event.subject):
                self._outbox.add(event.kind, event.subject, event.facts, self._channels, now)

    async def send_due(self, channel: str) -> None:
        """Send what is due by a channel and still news, until it fails; then the others wait as well."""
        for delivery in self._outbox.due(channel, int(time.time())):
            if not self._source.is_news(delivery.notice, int(time.time())):
                self._outbox.set_dropped(delivery)
                continue
            try:
                await in_a_thread(partial(self._channels[channel], delivery.notice))
            except UnavailableError as error:
                _log.warning("a notice cannot be sent", extra={"reason": channel})
                self._outbox.set_failed(delivery, str(error), int(time.time()))
                return
            self._outbox.set_sent(delivery, int(time.time()))


async def in_a_thread(work: Callable[[], None]) -> None:
    """Wait for work in a thread of its own, for which a process that ends does not wait."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except Exception as raised:  # noqa: BLE001 - raised where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(finish, error)

    threading.Thread(target=run, daemon=True).start()
    await done


async def _again(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        with failures_logged(_log, "notices cannot be made or sent"):
            await work()
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


def notifier_of(  # noqa: PLR0913, PLR0917 - what may happen, and who wants to know it
    settings: NotifySettings | None,
    study: str,
    identity: Identity,
    store: CuratorStore,
    ledger: Ledger,
    held: Callable[[], AbstractSet[str]],
) -> Notifier | None:
    """Return what sends a curator's notices; None if nobody wants any. The arguments are those of `EventSource`."""
    if settings is None:
        return None
    name = identity.party.name
    source = EventSource(
        study=study, name=name, identity=identity, store=store, ledger=ledger, settings=settings, held=held
    )
    return Notifier(source, Outbox(store.connection))
