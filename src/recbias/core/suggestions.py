"""The nearest valid names for one that is not valid."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def normalize_name(name: str) -> str:
    """Return a name without case, hyphens, underscores and spaces.

    >>> normalize_name("nDCG"), normalize_name("R-RIPA")
    ('ndcg', 'rripa')
    """
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def find_nearest(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Return the known names that look most like ``name``, the best first.

    >>> find_nearest("neighbours", ["neighbors", "shrink"])
    ['neighbors']
    """
    by_plain = {normalize_name(each): each for each in known}
    close = difflib.get_close_matches(normalize_name(name), by_plain, n=most, cutoff=0.6)
    return [by_plain[each] for each in close]


def suggest(name: str, known: Iterable[str], *, listed: int = 12) -> str:
    """Return the help line for an unknown name: the nearest ones, else the valid ones.

    >>> suggest("neighbours", ["neighbors", "shrink"])
    'did you mean neighbors?'
    >>> suggest("zzz", ["neighbors", "shrink"])
    'the valid names are neighbors, shrink'
    """
    names = sorted(known)
    close = find_nearest(name, names)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if not names:
        return "it takes none"
    more = f" and {len(names) - listed} more" if len(names) > listed else ""
    return f"the valid names are {', '.join(names[:listed])}{more}"
