"""The direction in a model's vectors that stands for a sensitive attribute, as a spec names it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt
from numpy.lib.format import read_array

from recbias.core.arrays import FloatArray
from recbias.core.errors import BrokenContract, MalformedLine, MissingFile
from recbias.core.input_files import has_file, open_input
from recbias.core.outputs.evidence import Evidence
from recbias.core.protocols import InputFile
from recbias.core.stage_context import warn
from recbias.metrics.embeddings.entity_sets import Pair
from recbias.metrics.embeddings.linear_svc import learn
from recbias.numerics.directions import (
    centroid_difference,
    oriented,
    pair_component,
    random_direction,
)

Named: TypeAlias = Literal["centroid", "svc", "csvc", "pca", "pca_centred", "random"]
DirectionChoice: TypeAlias = Named | InputFile
TopN: TypeAlias = Annotated[int, Gt(0)]
Sample: TypeAlias = Annotated[int, Ge(2)] | None


def find_direction(
    choice: Named | Path,
    groups: Pair,
    evidence: Evidence,
    *,
    top_n: int = 200,
    sample: int | None = None,
) -> FloatArray:
    """Return a direction of length 1, ``float64[d]``, along which A lies farther than B.

    - ``centroid``: the mean vector of A minus that of B;
    - ``svc``: the weights of a linear support vector classifier of A and B;
    - ``csvc``: the same, learned from the members most aligned with ``centroid``;
    - ``pca``: the first principal component of the differences of all pairs of A and B (the paper
      draws 1,000 of them, which leaves it to chance);
    - ``pca_centred``: the same, the mean difference taken away first;
    - ``random``: any, for control;
    - a ``.npy`` file of one vector.

    Args:
        choice: Which.
        groups: A and B.
        evidence: Where chance comes from.
        top_n: ``csvc``: how many of each group it learns from.
        sample: ``svc`` and ``csvc``: how many of each group take part at most.

    The same evidence gives the same one to every metric. Every entry is NaN, with a warning, where
    there is none: vectors that are all alike have no difference.

    Raises:
        BrokenContract: The vector of the file is of another length.
    """
    a, b = (each.vectors for each in groups)
    if isinstance(choice, Path):
        found = _of_space(read_direction(choice), a.shape[1], choice)
    else:
        found = work_out(choice, a, b, rng=evidence.rng(), top_n=top_n, sample=sample)
    direction = oriented(found, *(each.directions for each in groups))
    if np.isnan(direction).any():
        names = " and ".join(each.name for each in groups)
        warn(f"{evidence.metric}: the vectors of {names} have no {name_of(choice)} direction")
    return direction


def name_of(choice: Named | Path) -> str:
    """Return what figures call a direction: the name of a file without its folder."""
    return choice.name if isinstance(choice, Path) else choice


def read_direction(path: Path) -> FloatArray:
    """Return the vector of a ``.npy`` file, ``float64[d]``.

    Raises:
        MissingFile: It is not there.
        MalformedLine: It is no ``.npy`` file of one vector of real numbers.
        BrokenContract: It holds NaN or an infinity, or is 0.
    """
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    remedy = "write it with numpy.save(path, vector)"
    try:
        with open_input(path) as file:
            vector = read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        found = "not a .npy file of numbers"
        raise MalformedLine(found, where=str(path), remedy=remedy) from error
    if vector.ndim != 1 or vector.dtype.kind not in "fiu":
        found = f"an array {vector.dtype}{list(vector.shape)}, not one vector of numbers"
        raise MalformedLine(found, where=str(path), remedy=remedy)
    numbers = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(numbers).all() or not numbers.any():
        found = "the vector holds NaN or an infinity, or is 0: it has no direction"
        raise BrokenContract(found, where=str(path), remedy=remedy)
    return numbers


def check_direction(choice: Named | Path) -> None:
    """Raise what can be said of a direction before there are vectors: what its file holds."""
    if isinstance(choice, Path):
        read_direction(choice)


def work_out(
    choice: Named,
    a: FloatArray,
    b: FloatArray,
    *,
    rng: np.random.Generator,
    top_n: int = 200,
    sample: int | None = None,
) -> FloatArray:
    """Return a direction of two groups, ``float64[d]``, of any length and sign; 0 where none is.

    Args:
        choice: Which, as for ``find_direction``.
        a: Vectors of A, ``float64 (n, d)``.
        b: Vectors of B, ``float64 (m, d)``.
        rng: Where chance comes from.
        top_n: ``csvc``: how many of each group it learns from.
        sample: ``svc`` and ``csvc``: how many of each group take part at most.
    """
    if choice == "centroid":
        return centroid_difference(a, b)
    if choice == "random":
        return random_direction(a.shape[1], rng)
    if choice in {"pca", "pca_centred"}:
        return pair_component(a, b, centred=choice == "pca_centred")
    most = top_n if choice == "csvc" else None
    return learn(a, b, rng=rng, sample=sample, top_n=most).separator.weights


def _of_space(direction: FloatArray, d: int, path: Path) -> FloatArray:
    if direction.size != d:
        found = f"a vector of {direction.size} numbers, where the model's have {d}"
        raise BrokenContract(found, where=str(path), remedy="give a vector of the model's space")
    return direction
