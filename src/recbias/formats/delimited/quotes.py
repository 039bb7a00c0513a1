"""Quoted cells of delimited text: where they are open, and whether every reader agrees on them."""

from __future__ import annotations

import csv
import io

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.formats.text_files import limit_cells

QUOTE = ord('"')


def are_quotes_regular(data: bytes, delimiter: str) -> bool:
    """Return whether each quote starts or ends a cell, or is doubled in a quoted cell.

    Arrow and the csv module then read the same cells. A quote elsewhere, as in ``5" nail``, is a
    character of its cell, or an error behind a quoted one.

    >>> are_quotes_regular(b'1,"a ""b"" c"', ","), are_quotes_regular(b'1,5" nail', ",")
    (True, False)
    """
    quotes = _find_quotes(data)
    return quotes.size % 2 == 0 and _are_at_ends(quotes, data, delimiter)


def is_in_quotes(data: bytes, delimiter: str) -> bool:
    r"""Return whether some lines end inside a quoted cell.

    >>> is_in_quotes(b'1,"a\n', ","), is_in_quotes(b'1,5" nail\n', ",")
    (True, False)
    """
    quotes = _find_quotes(data)
    if _are_at_ends(quotes, data, delimiter):
        return quotes.size % 2 == 1
    text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    with limit_cells():
        while True:
            try:
                next(reader)
            except StopIteration:
                return False
            except csv.Error as error:  # else the reader goes on with the next line
                if "end of data" in str(error):
                    return True


def _find_quotes(data: bytes) -> AnyArray:
    return np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == QUOTE)


def _are_at_ends(quotes: AnyArray, data: bytes, delimiter: str) -> bool:
    """Return whether quotes that open and close in turn do so at the ends of cells."""
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = np.frombuffer(f'{delimiter}"\r\n'.encode(), dtype=np.uint8)
    opening, closing = quotes[::2], quotes[1::2]
    before = letters[opening[opening > 0] - 1]
    after = letters[closing[closing < letters.size - 1] + 1]
    return bool(np.isin(before, ends).all() and np.isin(after, ends).all())
