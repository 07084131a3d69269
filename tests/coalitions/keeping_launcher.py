"""Start a party of a study that keeps what it should forget, or adds no noise.

    python keeping_launcher.py FOLDER CHANGE[,CHANGE...] curator serve ...

sample             a curator keeps which token has which id, and of every release the tokens of the sampled rows in
                   order, and the coins
ciphertext         a server keeps every column as it came
no-curator-noise   a curator encrypts the rows as they are
no-server-noise    a server publishes the ciphertext as it came
"""

import importlib
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def keep_sample(folder: Path) -> None:
    """Keep whose row is whose, and which rows the curators replaced."""
    order: Any = importlib.import_module("veiltab.curator.alignment.token_order")
    sampler: Any = importlib.import_module("veiltab.curator.columns.shared_sample").Sampler
    tokens, draw = order.tokens, sampler.draw
    names: dict[str, str] = {}

    def kept_tokens(ids: Any, key: bytes) -> Any:  # noqa: ANN401 - those of pyarrow
        found = tokens(ids, key)
        names.update({bytes(token).hex(): name for token, name in zip(found, ids.to_pylist(), strict=True)})
        (folder / "ids.json").write_text(json.dumps(names), "utf-8")
        return found

    async def kept_draw(self: Any, spec: Any, table: Any, *others: Any) -> Any:  # noqa: ANN401 - those of the method
        sample = await draw(self, spec, table, *others)
        coins = [coins for _, coins in sample.noise.coins(len(sample.rows))]
        np.savez(folder / spec.release_id, tokens=table.tokens()[sample.rows[:]], coins=np.concatenate(coins))
        return sample

    order.tokens, sampler.draw = kept_tokens, kept_draw


def keep_ciphertext(folder: Path) -> None:
    """Copy the columns before they are deleted."""
    store: Any = importlib.import_module("veiltab.server.records.store").ServerStore
    delete = store.delete_ciphertext

    def kept(self: Any, release_id: str) -> None:  # noqa: ANN401 - a store
        (folder / release_id).mkdir(exist_ok=True)
        spec = self.session(release_id).spec
        for part, (path, start) in self.complete_files(release_id).items():
            if path.exists():
                length = spec.column_of_part(part).byte_length(spec.uploaded_rows)
                (folder / release_id / part).write_bytes(path.read_bytes()[start : start + length])
        delete(self, release_id)

    store.delete_ciphertext = kept


def leave_rows_as_they_are() -> None:
    """Add no noise at a curator."""
    noise: Any = importlib.import_module("veiltab.curator.columns.noise_and_canaries").CuratorsNoise
    noise._with_noise = lambda _self, column, _size, _key, _first: iter([column[:]])


def publish_ciphertext() -> None:
    """Add no noise at the server."""
    perturbation: Any = importlib.import_module("veiltab.server.release.perturbation")
    cheating: Any = importlib.import_module("veiltab.play.demos.cheating_server")
    perturbation.perturb_chunk = partial(cheating.perturb_dishonestly, cheat=cheating.Cheat.LAZY)


def main() -> None:
    """Make the changes, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    folder, changes = Path(sys.argv.pop(1)), sys.argv.pop(1)
    for change in changes.split(","):
        match change:
            case "sample":
                keep_sample(folder)
            case "ciphertext":
                keep_ciphertext(folder)
            case "no-curator-noise":
                leave_rows_as_they_are()
            case "no-server-noise":
                publish_ciphertext()
            case _:
                raise SystemExit(f"no such change: {change}")
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - after the changes

    run()


if __name__ == "__main__":
    main()
