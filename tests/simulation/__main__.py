"""Runs of a simulated deployment: `python -m tests.simulation SEED [COUNT] [--trace]`."""

import argparse
import logging
import sys
import time
import traceback
from collections import Counter

from tests.simulation.deployment import Deployment


def main() -> int:
    """Run some seeds; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=1)
    parser.add_argument("--trace", action="store_true", help="print every message")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    happened, ends, failed = Counter[str](), Counter[str](), 0
    began = time.process_time()
    for seed in range(options.seed, options.seed + options.count):
        deployment = Deployment(seed=seed)
        try:
            outcome = deployment.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            failed += 1
            where = (
                traceback.format_exc() if options.trace or options.count == 1 else f"{type(error).__name__}: {error}"
            )
            sys.stdout.write(f"seed {seed} fails: {where}\n")
        else:
            happened += outcome.happened
            ends += Counter(outcome.ends.values())
        if options.trace:
            sys.stdout.write("\n".join(deployment.network.trace) + "\n")
    seconds = time.process_time() - began
    sys.stdout.write(f"{options.count - failed} of {options.count} seeds hold, {seconds:.1f} s CPU\n")
    sys.stdout.write(f"{dict(ends)}\n{dict(happened)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
