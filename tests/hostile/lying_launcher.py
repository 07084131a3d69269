"""Start `veiltab` as a curator that deviates in one step of a charged release.

python lying_launcher.py nosample|badsymbol|wrongkey|announces curator serve ...
"""

import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any


def main() -> None:
    """Make the change, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    lie = sys.argv.pop(1)
    from veiltab.common.errors import NotReadyError  # noqa: PLC0415 - after the change of the path
    from veiltab.curator.columns.shared_sample import Sampler  # noqa: PLC0415 - only this test looks inside
    from veiltab.curator.release.step_executor import StepExecutor  # noqa: PLC0415 - only this test looks inside
    from veiltab.curator.release.upload import ServerLink  # noqa: PLC0415 - only this test looks inside
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - only this test looks inside

    draw, upload, canaries = Sampler.draw, ServerLink.upload, ServerLink.canaries
    charge = StepExecutor._charge

    async def draws_and_hides(*given: Any) -> None:  # noqa: ANN401 - as a sampler is asked
        await draw(*given)
        raise NotReadyError("likes another sample better", where="curator bob")

    async def sends_no_symbol(link: ServerLink, spec: Any, columns: Any, **given: Any) -> Any:  # noqa: ANN401 - as above
        sent = dict[str, tuple[Path, bytes]]()
        for name, (path, digest) in columns.items():
            sent[name] = path, digest
            if path.exists():
                data = b"\xff" + path.read_bytes()[1:]
                path.write_bytes(data)
                sent[name] = path, hashlib.sha256(data).digest()
        return await upload(link, spec, sent, **given)

    async def announces_another_table(executor: StepExecutor, release: Any, server: ServerLink) -> None:  # noqa: ANN401 - as above
        _, table = release.several.each_table()
        await server.announce(replace(table, deadline=table.deadline + 1))
        await charge(executor, release, server)

    changes: dict[str, tuple[type, str, Callable[..., Any]]] = {
        "nosample": (Sampler, "draw", draws_and_hides),
        "badsymbol": (ServerLink, "upload", sends_no_symbol),
        "wrongkey": (ServerLink, "canaries", lambda link, spec, _key: canaries(link, spec, bytes(32))),
        "announces": (StepExecutor, "_charge", announces_another_table),
    }
    setattr(*changes[lie])
    run()


if __name__ == "__main__":
    main()
