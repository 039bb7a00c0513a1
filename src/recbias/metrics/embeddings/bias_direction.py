"""The direction of a sensitive attribute in the embedding space of a model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.arrays import FloatArray
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingFile,
    NothingLeft,
)
from recbias.core.input_files import has_file
from recbias.core.outputs.evidence import Evidence
from recbias.core.protocols import InputFile
from recbias.core.stage_context import collect_warnings, warn
from recbias.formats.vectors import read_numbers
from recbias.metrics.embeddings.entity_pairs import MIN_PAIRS, GroupPair, find_pairs
from recbias.metrics.embeddings.entity_sets import SetPair, select_members
from recbias.numerics.directions import (
    centroid_difference,
    fit_pair_component,
    is_component_tied,
    orient_direction,
    principal_components,
    sample_direction,
)
from recbias.numerics.linear_svc import train_classifier

DirectionName: TypeAlias = Literal["centroid", "svc", "csvc", "pca", "pca_centred", "random"]
DirectionChoice: TypeAlias = DirectionName | InputFile
TopN: TypeAlias = Annotated[int, Gt(0)]
Sample: TypeAlias = Annotated[int, Ge(2)] | None
Pairs: TypeAlias = InputFile | None

COMPONENTS = ("pca", "pca_centred")
"""The directions that are components of the differences of pairs."""


def find_direction(
    choice: DirectionName | Path,
    groups: SetPair,
    evidence: Evidence,
    *,
    top_n: int = 200,
    sample: int | None = None,
    pairs: Path | None = None,
) -> FloatArray:
    """Return the unit vector ``float64[d]`` from group B to group A by a method or a file.

    - ``centroid``: the mean vector of A minus that of B;
    - ``svc``: the weights of a linear support vector classifier of A and B;
    - ``csvc``: the same, trained on the members most aligned with ``centroid``;
    - ``pca``: the first principal component of the differences of the given ``pairs`` of A and B,
      by default of all (the paper samples 1,000 of them);
    - ``pca_centred``: the same after subtracting the mean difference;
    - ``random``: a random direction, as a control;
    - a ``.npy`` file of one vector.

    The same evidence gives the same direction to every metric. Every entry is NaN, with a warning,
    if the groups have no direction, for example because all vectors are equal.

    Raises:
        BrokenContract: The vector of the file has another size.
        UnknownIdentifier: A pair has an identifier that is not in its group.
        NothingLeft: Fewer than two pairs have both vectors.
    """
    a, b = (group.vectors for group in groups)
    if isinstance(choice, Path):
        vector, d = read_direction(choice), a.shape[1]
        if vector.size != d:
            message = f"a vector of {vector.size} dimensions, but those of the model have {d}"
            remedy = "use a vector of the embedding space of the model"
            raise BrokenContract(message, where=str(choice), remedy=remedy)
    elif pairs is not None and choice in COMPONENTS:
        vector = fit_component(compute_differences(pairs, groups), choice)
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
    vector = read_numbers(path, 1, "one vector of numbers", remedy)
    numbers = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(numbers).all() or not numbers.any():
        message = "the vector contains NaN or infinity, or is 0, so it has no direction"
        raise BrokenContract(message, where=str(path), remedy=remedy)
    return numbers


def check_directions(
    choices: Iterable[DirectionName | Path],
    groups: GroupPair,
    pairs: Path | None,
    evidence: Evidence,
) -> None:
    """Validate the files of directions and pairs, before there are vectors.

    Raises:
        Contradiction: Pairs are given, and no direction is a component of them.
    """
    for choice in choices:
        if isinstance(choice, Path):
            read_direction(choice)
    if pairs is None:
        return
    if not set(choices) & set(COMPONENTS):
        message = "pairs are given, but no direction is estimated from pairs"
        remedy = "choose pca or pca_centred, or remove pairs"
        raise Contradiction(message, where="pairs", remedy=remedy)
    ids = vars(evidence)[groups.of].ids.ids
    a, b = (ids[codes] for codes in select_members(evidence, groups))
    find_pairs(pairs, a, b)


def list_omitted_settings(choices: Iterable[DirectionName | Path], *more: str) -> frozenset[str]:
    """Return the settings that no direction depends on, with those of tests and intervals."""
    omitted = set(more)
    if "csvc" not in choices:
        omitted.add("top_n")
    if not {"svc", "csvc"} & set(choices):
        omitted.add("sample")
    return frozenset(omitted)


def compute_differences(path: Path, groups: SetPair) -> FloatArray:
    """Return the vector of A minus that of B of each pair of a table, ``float64 (n, d)``.

    Pairs of which a member has no vector, or a vector of 0, are excluded with a warning.

    Raises:
        NothingLeft: Fewer than two pairs remain.
    """
    positions = find_pairs(path, groups[0].ids, groups[1].ids)
    sides = list(zip(groups, positions, strict=True))
    usable = np.logical_and(*(group.has_vector[rows] for group, rows in sides))
    a, b = (
        group.vectors[(np.cumsum(group.has_vector) - 1)[rows[usable]]] for group, rows in sides
    )
    if n_excluded := int(np.count_nonzero(~usable)):
        warn(f"{n_excluded:,} of the {usable.size:,} pairs of {path.name} lack a vector: excluded")
    if len(a) < MIN_PAIRS:
        message = f"{len(a)} pair(s) of {path.name} have both vectors"
        raise NothingLeft(message, where="pairs", remedy=f"give {MIN_PAIRS} or more")
    return np.asarray(a - b)


def fit_component(differences: FloatArray, choice: DirectionName | Path) -> FloatArray:
    """Return the first principal component of differences, ``float64[d]``; 0 for none.

    ``choice`` is ``pca``, or ``pca_centred`` to subtract the mean difference first.
    """
    components = principal_components(differences, 1, centred=choice == "pca_centred")
    return components[0] if len(components) else np.zeros(differences.shape[1])


def is_tied(choice: DirectionName | Path, groups: SetPair, pairs: Path | None) -> bool:
    """Return whether another component of differences may be the first of all there could be.

    The differences are those of the given ``pairs``, by default of all; ``choice`` is ``pca``, or
    ``pca_centred`` to subtract the mean difference first.
    """
    is_centred = choice == "pca_centred"
    if pairs is not None:
        with collect_warnings():  # the estimate has given these warnings
            differences = compute_differences(pairs, groups)
        return is_component_tied([differences - is_centred * differences.mean(axis=0)])
    a, b = (np.asarray(group.vectors, dtype=np.float64) for group in groups)
    shift = None if is_centred else a.mean(axis=0) - b.mean(axis=0)
    return is_component_tied([a - a.mean(axis=0), b - b.mean(axis=0)], shift)


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
