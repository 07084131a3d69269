"""Start `veiltab` as a curator that returns the querier's masked ids in another order.

python turning_launcher.py curator serve ...
"""

import sys
from pathlib import Path


def main() -> None:
    """Make the change, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    from veiltab.curator.alignment.private.masking import Masking  # noqa: PLC0415 - after the change of the path
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - only this test looks inside

    honest = Masking.mask_elements

    async def turned(masking: Masking, source: Path, scalar: bytes, path: Path, what: str) -> None:
        await honest(masking, source, scalar, path, what)
        if path.name.startswith("query"):
            made = path.read_bytes()
            path.write_bytes(made[32:] + made[:32])

    setattr(Masking, "mask_elements", turned)  # noqa: B010 - a method exchanged for another
    run()


if __name__ == "__main__":
    main()
