"""Start `veiltab` so that its server adds no noise to the second column: that column's curator alone can see it.

python partial_cheat_launcher.py server serve ...
"""

import sys
from typing import Any


def main() -> None:
    """Replace the perturbation, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - after the change
    from veiltab.server.release import perturbation  # noqa: PLC0415 - after the change

    perturb = perturbation.perturb_chunk  # type: ignore[attr-defined] # its import

    def partly(inputs: Any, sizes: Any, mechanism: Any, source: Any, outputs: Any, *, chunk: int) -> None:  # noqa: ANN401, PLR0913 - as perturb_chunk
        perturb(inputs, sizes, mechanism, source, outputs, chunk=chunk)
        outputs[1][:] = inputs[1]

    perturbation.perturb_chunk = partly  # type: ignore[attr-defined] # its import
    run()


if __name__ == "__main__":
    main()
