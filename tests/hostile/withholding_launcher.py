"""Start `veiltab` as a curator that takes the others' shares of a release's coin, and never opens its own.

python withholding_launcher.py curator serve ...
"""

import sys


def main() -> None:
    """Make the change, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    from veiltab.common.errors import NotReadyError  # noqa: PLC0415 - after the change of the path
    from veiltab.curator.peers.coins import Coins  # noqa: PLC0415 - only this test looks inside
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - only this test looks inside

    opens = Coins.open_share

    def withholds(coins: Coins, coin_id: str, peer: str, seen: bytes, committed: bytes) -> bytes:
        if coin_id.startswith("release/"):
            raise NotReadyError("does not hold every commitment yet", where="curator bob")
        return opens(coins, coin_id, peer, seen, committed)

    setattr(Coins, "open_share", withholds)  # noqa: B010 - a method exchanged for another
    run()


if __name__ == "__main__":
    main()
