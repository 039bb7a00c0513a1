"""The direction of a sensitive attribute in the embedding space of a model."""

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
from recbias.metrics.embeddings.entity_sets import SetPair
from recbias.numerics.directions import (
    centroid_difference,
    fit_pair_component,
    orient_direction,
    sample_direction,
)
from recbias.numerics.linear_svc import train_classifier

DirectionName: TypeAlias = Literal["centroid", "svc", "csvc", "pca", "pca_centred", "random"]
DirectionChoice: TypeAlias = DirectionName | InputFile
TopN: TypeAlias = Annotated[int, Gt(0)]
Sample: TypeAlias = Annotated[int, Ge(2)] | None


def find_direction(
    choice: DirectionName | Path,
    groups: SetPair,
    evidence: Evidence,
    *,
    top_n: int = 200,
    sample: int | None = None,
) -> FloatArray:
    """Return the unit vector ``float64[d]`` from group B to group A by a method or a file.

    - ``centroid``: the mean vector of A minus that of B;
    - ``svc``: the weights of a linear support vector classifier of A and B;
    - ``csvc``: the same, trained on the members most aligned with ``centroid``;
    - ``pca``: the first principal component of the differences of all pairs of A and B (the paper
      samples 1,000 of them);
    - ``pca_centred``: the same after subtracting the mean difference;
    - ``random``: a random direction, as a control;
    - a ``.npy`` file of one vector.

    The same evidence gives the same direction to every metric. Every entry is NaN, with a warning,
    if the groups have no direction, for example because all vectors are equal.

    Raises:
        BrokenContract: The vector of the file has another size.
    """
    a, b = (group.vectors for group in groups)
    if isinstance(choice, Path):
        vector, d = read_direction(choice), a.shape[1]
        if vector.size != d:
            message = f"a vector of {vector.size} dimensions, but those of the model have {d}"
            remedy = "use a vector of the embedding space of the model"
            raise BrokenContract(message, where=str(choice), remedy=remedy)
    else:
        choosing = groups[0].choosing, groups[1].choosing
        vector = estimate_direction(
            choice, (a, b), rng=evidence.rng(), top_n=top_n, sample=sample, choosing=choosing
        )
    direction = orient_direction(vector, *(group.directions for group in groups))
    if np.isnan(direction).any():
        names = " and ".join(group.name for group in groups)
        name = name_direction(choice)
        warn(f"{evidence.metric}: the vectors of {names} have no {name} direction")
    return direction


def name_direction(choice: DirectionName | Path) -> str:
    """Return the name of a direction in results: the name of a file without its folder."""
    return choice.name if isinstance(choice, Path) else choice


def read_direction(path: Path) -> FloatArray:
    """Return the vector of a ``.npy`` file, ``float64[d]``.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a ``.npy`` file of one vector of real numbers.
        BrokenContract: The vector contains NaN or infinity, or is 0.
    """
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    remedy = "write it with numpy.save(path, vector)"
    try:
        with open_input(path) as file:
            vector = read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        message = "not a .npy file of numbers"
        raise MalformedLine(message, where=str(path), remedy=remedy) from error
    if vector.ndim != 1 or vector.dtype.kind not in "fiu":
        message = f"an array {vector.dtype}{list(vector.shape)}, not one vector of numbers"
        raise MalformedLine(message, where=str(path), remedy=remedy)
    numbers = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(numbers).all() or not numbers.any():
        message = "the vector contains NaN or infinity, or is 0, so it has no direction"
        raise BrokenContract(message, where=str(path), remedy=remedy)
    return numbers


def check_direction(choice: DirectionName | Path) -> None:
    """Validate the file of a direction, before there are vectors."""
    if isinstance(choice, Path):
        read_direction(choice)


def estimate_direction(
    choice: DirectionName,
    groups: tuple[FloatArray, FloatArray],
    *,
    rng: np.random.Generator,
    top_n: int = 200,
    sample: int | None = None,
    choosing: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Estimate the direction of two groups: ``float64[d]`` of any length and sign, 0 for none.

    The groups are ``float64 (n, d)`` and ``(m, d)``; the settings are those of ``find_direction``.
    ``choosing`` are the vectors by which ``csvc`` chooses members, by default those of the groups.
    """
    a, b = groups
    if choice == "centroid":
        return centroid_difference(a, b)
    if choice == "random":
        return sample_direction(a.shape[1], rng)
    if choice in {"pca", "pca_centred"}:
        return fit_pair_component(a, b, centred=choice == "pca_centred")
    n_training = top_n if choice == "csvc" else None
    classifier = train_classifier(
        a, b, rng=rng, sample=sample, top_n=n_training, choosing=choosing
    )
    return classifier.separator.weights
