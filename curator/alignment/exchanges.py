"""The exchange by which a study's curators find their common respondents."""

from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.storage.disk import Room
from veiltab.common.study.file import Study
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.records.store import CuratorStore

if TYPE_CHECKING:
    from veiltab.curator.alignment.private.private_exchange import PrivateExchange


def exchange_of(
    study: Study, name: str, folder: Path, store: CuratorStore, room: Room
) -> "TokenExchange | PrivateExchange":
    """Return the exchange of a study: by tokens, or private.

    Args:
        study: the study file.
        name: the curator's.
        folder: for what the exchange keeps.
        store: the curator's database.
        room: what is left of its disk.
    """
    if study.alignment == "tokens":
        return TokenExchange(len(study.curators), folder, room)
    # A study that aligns by tokens needs neither these nor libsodium.
    from veiltab.curator.alignment.private.masking import MAX_IDS, Masking  # noqa: PLC0415
    from veiltab.curator.alignment.private.private_exchange import PrivateExchange  # noqa: PLC0415

    return PrivateExchange(
        name,
        [curator.name for curator in study.curators],
        folder,
        store,
        Masking(folder.parent),
        room,
        most_ids={each.name: each.most_ids for each in study.curators if each.most_ids is not None},
        maximum=min(MAX_IDS, study.maximum_respondents),
    )
