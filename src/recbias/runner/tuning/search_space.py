"""The combinations of settings in a search space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from recbias.config.plugin_spec import Choice, Dimension, Tune
from recbias.core.errors import BrokenContract


def is_exhaustive(tune: Tune) -> bool:
    """Return whether a search has enough trials for every combination of settings.

    It then tries each combination once, since sampling would repeat some and miss others.
    """
    n_combinations = count_combinations(tune.space)
    return n_combinations is not None and n_combinations <= tune.trials


def count_combinations(space: Sequence[Dimension]) -> int | None:
    """Return the number of combinations of distinct values; None if a setting is a real number.

    >>> from recbias.config.plugin_spec import Range
    >>> rates, sizes = Choice("rate", (0.1, 0.2, 0.1)), Range("size", 2, 4, log=True, integer=True)
    >>> count_combinations((rates, sizes))
    6
    >>> count_combinations((Range("rate", 0, 1, log=False, integer=False),)) is None
    True
    """
    counts = []
    for dimension in space:
        if isinstance(dimension, Choice):
            counts.append(len(_list_values(dimension)))
        elif dimension.integer:
            counts.append(int(dimension.high) - int(dimension.low) + 1)
        else:
            return None
    return math.prod(counts)


def select_combination(space: Sequence[Dimension], number: int, seed: int) -> dict[str, Any]:
    """Return the settings of one trial of a search that tries every combination once.

    The combinations are in random order, so that the first ones come from all of the space; trials
    count from 1. The order depends on the finite space and on the seed of the search only, so the
    trials of a batch never share a combination.

    >>> from recbias.config.plugin_spec import Range
    >>> space = (Choice("a", ("x", "y")), Range("b", 1, 2, log=False, integer=True))
    >>> sorted(tuple(select_combination(space, number, 7).values()) for number in (1, 2, 3, 4))
    [('x', 1), ('x', 2), ('y', 1), ('y', 2)]
    """
    values = {dimension.parameter: _list_values(dimension) for dimension in space}
    names = sorted(values)
    sizes = [len(values[name]) for name in names]
    combination = np.random.default_rng(seed).permutation(math.prod(sizes))[number - 1]
    positions = dict(zip(names, np.unravel_index(combination, sizes), strict=True))
    return {name: values[name][int(positions[name])] for name in values}


def _list_values(dimension: Dimension) -> Sequence[Any]:
    if isinstance(dimension, Choice):
        positions = dict.fromkeys(find_choice(dimension, value) for value in dimension.values)
        return [dimension.values[position] for position in positions]
    return range(int(dimension.low), int(dimension.high) + 1)


def find_choice(choice: Choice, value: Any) -> int:
    """Return the position of a value among those of a choice, compared with its type.

    Raises:
        BrokenContract: The choice does not have the value.
    """
    for position, candidate in enumerate(choice.values):
        if type(candidate) is type(value) and candidate == value:
            return position
    raise BrokenContract(f"{value!r} is not among the values of {choice.parameter}")
