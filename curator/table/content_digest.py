"""What a table holds, as a digest: of ids, symbols and their order."""

import hashlib
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from veiltab.common.core.domain import Symbols
from veiltab.curator.formats.columns.arrow_buffers import string_buffers


class ContentDigest:
    """A SHA-256 that does not depend on how the rows are cut into batches."""

    def __init__(self, attributes: Sequence[str]) -> None:
        self._rows = 0
        self._lengths, self._texts = hashlib.sha256(), hashlib.sha256()
        self._columns = {name: hashlib.sha256() for name in attributes}

    def update(self, ids: pa.Array, columns: Mapping[str, Symbols]) -> None:
        """Take some respondents."""
        offsets, text = string_buffers(ids)
        self._rows += len(ids)
        self._lengths.update(np.diff(offsets).astype("<u4").data)
        self._texts.update(text.data)
        for name, digest in self._columns.items():
            digest.update(columns[name].data)

    def hexdigest(self) -> str:
        """Return the digest of all respondents so far."""
        head = json.dumps(["veiltab table 1", self._rows, list(self._columns)], ensure_ascii=True).encode("ascii")
        parts = [hashlib.sha256(head), self._lengths, self._texts, *self._columns.values()]
        return hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()
