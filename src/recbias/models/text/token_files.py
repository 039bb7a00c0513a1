"""Tokenized texts, written once to a memory-mapped file."""

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

CHUNK = 16384  # Number of texts per call of the tokenizer, which uses all cores
WIDTHS = 8  # Batches are padded to a multiple of this number of tokens

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of texts, concatenated.

    Args:
        values: The tokens of all texts, ``int32[t]``.
        starts: The position of the first token of each text, ``int64[n + 1]``.
        path: The file that holds them; another process reads it instead of a copy.
    """

    values: AnyArray
    starts: Integers
    path: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes this object."""
        if self.path is not None:
            return _map_file, (self.path,)
        return Tokens, (self.values, self.starts)

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> Integers:
        """The number of tokens of each text, ``int64[n]``."""
        return np.diff(self.starts)

    def pad_rows(self, rows: AnyArray, pad: int) -> tuple[Integers, AnyArray]:
        """Return padded tokens of a batch, ``int64[b, w]``, and attention mask, ``bool[b, w]``.

        The width is a multiple of ``WIDTHS``: kernels are cached per width, and accelerators are
        fastest at such widths. A text without tokens, such as an empty one under a tokenizer
        without special tokens, attends to one padding token: attention to nothing is NaN.
        """
        lengths = self.lengths[rows]
        offsets = np.arange(-(-np.maximum(lengths, 1).max(initial=0) // WIDTHS) * WIDTHS)
        mask = offsets < lengths[:, None]
        tokens = np.full(mask.shape, pad, dtype=np.int64)
        tokens[mask] = self.values[(self.starts[rows][:, None] + offsets)[mask]]
        mask[np.flatnonzero(lengths == 0), :1] = True
        return tokens, mask


@contextmanager
def tokenize_texts(texts: Ids, tokenizer: Any, max_length: int) -> Iterator[Tokens]:
    """Yield the tokens of texts from a file, which is created on the first call.

    Texts of more than ``max_length`` tokens, with the special tokens, are truncated; an empty one
    has only the special tokens. The tokenizer is a fast one of ``transformers``.
    """
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    inputs = [{**rules, "truncation": None, "padding": None}, max_length, texts.tolist()]
    with create_once(
        f"tokens-{compute_digest(inputs)}.arrow", partial(_write, texts, tokenizer, max_length)
    ) as path:
        yield _map_file(path)


def _write(texts: Ids, tokenizer: Any, max_length: int, path: Path) -> None:
    """Write the tokens as one list array of an Arrow file, with one chunk in memory at a time."""
    import pyarrow as pa

    lengths = np.empty(len(texts), dtype=np.int64)
    raw_path = path.with_name(f"{path.name}.loose")
    try:
        with raw_path.open("wb") as stream:
            for start in range(0, len(texts), CHUNK):
                chunk = texts[start : start + CHUNK].tolist()
                tokens = tokenizer(chunk, truncation=True, max_length=max_length)["input_ids"]
                lengths[start : start + len(chunk)] = [len(text_tokens) for text_tokens in tokens]
                np.fromiter(chain.from_iterable(tokens), dtype=np.int32).tofile(stream)
                report_progress("texts tokenized", start + len(chunk), len(texts))
        starts = pa.array(np.append(0, np.cumsum(lengths)), pa.int64())
        is_empty = not raw_path.stat().st_size
        values = np.empty(0, np.int32) if is_empty else np.memmap(raw_path, np.int32, "r")
        lists = pa.LargeListArray.from_arrays(starts, pa.array(values, pa.int32()))
        table = pa.table({"tokens": lists})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    finally:
        raw_path.unlink(missing_ok=True)


def _map_file(path: Path) -> Tokens:
    import pyarrow as pa

    column = pa.ipc.open_file(pa.memory_map(str(path))).read_all()["tokens"]
    if not column.num_chunks:
        return Tokens(np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64), path)
    lists = column.chunk(0)
    return Tokens(lists.values.to_numpy(), lists.offsets.to_numpy(), path)
