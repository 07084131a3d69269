"""Start a server that does not add the noise of a release.

python dishonest_launcher.py none|half server serve ...

none  publish the ciphertext as it came
half  replace a row with half of the probability
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch


def main() -> None:
    """Make the change, then run the command line."""
    # A script's own folder comes first on the path; its modules are none of the product's.
    del sys.path[0]
    how = sys.argv.pop(1)
    from veiltab.common.core.mechanism import perturb_chunk  # noqa: PLC0415 - after the path
    from veiltab.deploy.cli import main as run  # noqa: PLC0415 - as above
    from veiltab.server import perturbation  # noqa: PLC0415 - as above

    def copied(inputs: Sequence[Any], *others: Any, chunk: int) -> None:  # noqa: ANN401 - those of perturb_chunk
        del chunk
        for one, other in zip(inputs, others[-1], strict=True):
            other[:] = one

    def halved(inputs: Any, sizes: Any, mechanism: Any, *others: Any, chunk: int) -> None:  # noqa: ANN401 - as above
        perturb_chunk(inputs, sizes, replace(mechanism, replacement=mechanism.replacement // 2), *others, chunk=chunk)

    with patch.object(perturbation, "perturb_chunk", {"none": copied, "half": halved}[how]):
        run()


if __name__ == "__main__":
    main()
