"""Draws rows as a trusted curator could: by AIM or MST, in the environment of benchmarks/trusted-requirements.txt.

python -m benchmarks.trusted IN.npz OUT.npz METHOD EPSILON DELTA SEED

IN has `rows`, symbols of shape (n, attributes), and `shape`, the sizes of the attributes, which are public; OUT gets
`rows`, as many. The models are those of dpmm with its own settings; they protect that one row is added or removed,
which is less than that one is another.
"""

import sys

import numpy as np
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline  # type: ignore[import-not-found]


def main() -> None:
    """Fit a model to the rows and draw others from it."""
    source, target, method, epsilon, delta, seed = sys.argv[1:]
    given = np.load(source)
    names = [f"a{number}" for number in range(len(given["shape"]))]
    pipeline = {"AIM": AIMPipeline, "MST": MSTPipeline}[method](
        epsilon=float(epsilon), delta=float(delta), disable_processing=True, n_jobs=1
    )
    domain = dict(zip(names, given["shape"].tolist(), strict=True))
    pipeline.fit(pd.DataFrame(given["rows"], columns=names), domain=domain, random_state=int(seed))
    drawn = pipeline.generate(n_records=len(given["rows"]), random_state=int(seed))
    np.savez(target, rows=drawn[names].to_numpy(np.int64))


if __name__ == "__main__":
    main()
