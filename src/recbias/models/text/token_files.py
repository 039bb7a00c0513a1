"""Texts as tokens, worked out once by all cores into a file that is mapped and not read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Ids
from recbias.core.digests import compute_digest
from recbias.core.stage_context import create_once, report_progress

CHUNK = 16384
"""Texts that are handed to the tokenizer at once; it uses all cores."""

WIDTHS = 8
"""Batches are padded to a multiple of so many tokens."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of texts, end to end.

    Args:
        values: All tokens, ``int32[t]``.
        starts: Where each text's tokens start, ``int64[n + 1]``.
    """

    values: AnyArray
    starts: Integers

    def __len__(self) -> int:
        """Return the number of texts."""
        return self.starts.size - 1

    @property
    def lengths(self) -> Integers:
        """The number of tokens of each text, ``int64[n]``."""
        return np.diff(self.starts)

    def padded(self, rows: AnyArray, pad: int) -> tuple[Integers, AnyArray]:
        """Return the tokens of some texts, as wide as the longest, and which are no padding.

        The width is a multiple of ``WIDTHS``: for each width that occurs, matrix products are
        prepared and kept in memory, and accelerators are made for such widths. A text without a
        token, as tokenizers without special tokens make of an empty one, is read as one padding
        token: attention to nothing is not a number.

        Args:
            rows: Positions of texts.
            pad: What fills the rest.

        Returns:
            ``int64[b, w]`` and ``bool[b, w]``, true once or more in each row.
        """
        lengths = self.lengths[rows]
        places = np.arange(-(-np.maximum(lengths, 1).max(initial=0) // WIDTHS) * WIDTHS)
        inside = places < lengths[:, None]
        found = np.full(inside.shape, pad, dtype=np.int64)
        found[inside] = self.values[(self.starts[rows][:, None] + places)[inside]]
        inside[np.flatnonzero(lengths == 0), :1] = True
        return found, inside


@contextmanager
def tokenised(texts: Ids, tokenizer: Any, max_length: int) -> Iterator[Tokens]:
    """Yield the tokens of texts, from a file that is made the first time.

    Args:
        texts: The texts; one that is empty has the special tokens only.
        tokenizer: A fast tokenizer of ``transformers``.
        max_length: Tokens of a text, special ones among them; the rest is left out.
    """
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    parts = [{**rules, "truncation": None, "padding": None}, max_length, texts.tolist()]
    with create_once(
        f"tokens-{compute_digest(parts)}.arrow", partial(_write, texts, tokenizer, max_length)
    ) as path:
        yield _mapped(path)


def _write(texts: Ids, tokenizer: Any, max_length: int, path: Path) -> None:
    """Write the tokens as one list of an Arrow file; in memory there is one chunk at a time."""
    import pyarrow as pa

    lengths = np.empty(len(texts), dtype=np.int64)
    loose = path.with_name(f"{path.name}.loose")
    try:
        with loose.open("wb") as stream:
            for start in range(0, len(texts), CHUNK):
                chunk = texts[start : start + CHUNK].tolist()
                found = tokenizer(chunk, truncation=True, max_length=max_length)["input_ids"]
                lengths[start : start + len(chunk)] = [len(each) for each in found]
                np.fromiter(chain.from_iterable(found), dtype=np.int32).tofile(stream)
                report_progress("texts tokenised", start + len(chunk), len(texts))
        starts = pa.array(np.append(0, np.cumsum(lengths)), pa.int64())
        values = np.memmap(loose, np.int32, "r") if loose.stat().st_size else np.empty(0, np.int32)
        lists = pa.LargeListArray.from_arrays(starts, pa.array(values, pa.int32()))
        table = pa.table({"tokens": lists})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    finally:
        loose.unlink(missing_ok=True)


def _mapped(path: Path) -> Tokens:
    import pyarrow as pa

    columns = pa.ipc.open_file(pa.memory_map(str(path))).read_all()["tokens"]
    if not columns.num_chunks:
        return Tokens(np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64))
    lists = columns.chunk(0)
    return Tokens(lists.values.to_numpy(), lists.offsets.to_numpy())
