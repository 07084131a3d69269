"""Start `veiltab` so that it tells everything: log, metrics, and spans.

Chunks are short, so that each column is a stream of its own, as a long one is.

python observed_launcher.py FOLDER role serve ... --name NAME ...

FOLDER/ports.json says on which port of the loopback interface each party serves its metrics, where the collector of
spans listens, and how long chunks are if not 400 bytes.
"""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Add the options, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    folder = Path(sys.argv.pop(1))
    name = sys.argv[sys.argv.index("--name") + 1]
    ports = json.loads((folder / "ports.json").read_text("utf-8"))
    sys.argv += ["--metrics", str(ports[name]), "--verbose"]
    # Milliseconds: a party that is killed has sent what it did before.
    os.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": ports["collector"], "OTEL_BSP_SCHEDULE_DELAY": "50"}
    from veiltab.common.rpc import chunks  # noqa: PLC0415 - after the changes

    chunks.CHUNK = ports.get("chunk", 400)
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - as above

    run()


if __name__ == "__main__":
    main()
