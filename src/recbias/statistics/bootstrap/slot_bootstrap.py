"""The bootstrap of figures over every combination of the words of several slots."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.bootstrap.cluster_bootstrap import cluster_weights
from recbias.statistics.intervals import spread
from recbias.statistics.permutation.slot_permutation import SlotExchange


def slot_sets(n_slots: int) -> list[tuple[int, ...]]:
    """Return the sets of slots, small ones first.

    >>> slot_sets(2)
    [(0,), (1,), (0, 1)]
    """
    sizes = range(1, n_slots + 1)
    return [each for size in sizes for each in combinations(range(n_slots), size)]


def slot_weights(labels: AnyArray, n_samples: int, rng: np.random.Generator) -> list[FloatArray]:
    """Return the bootstrap weights of each set of slots, in the order of ``slot_sets``.

        weight of a combination = 1 + Π_{s in S} (w_s - 1)

    w_s is how often its word of slot s was drawn: each slot by itself, within the class (gender)
    of the words, and 1 on average. A single slot is resampled as it is; by a set of several, what
    their words do together is resampled and what each does alone is not.

    Args:
        labels: The label of every combination of words, ``int[n1, n2, ...]``.
        n_samples: How many samples are drawn.
        rng: Where chance comes from.

    Returns:
        ``float64[b, n1 n2 ...]`` each; NaN where a word is alone in its class.

    >>> square = np.array([[0, 0], [0, 0]])
    >>> [each.shape for each in slot_weights(square, 5, np.random.default_rng(0))]
    [(5, 4), (5, 4), (5, 4)]
    """
    words = np.indices(labels.shape).reshape(labels.ndim, -1)
    beside = []
    for strata, own in zip(SlotExchange.of(labels).classes, words, strict=True):
        sizes = np.bincount(strata)[strata].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = cluster_weights(strata, n_samples, rng) * (sizes / (sizes - 1.0))
        beside.append(drawn[:, own] - 1.0)
    products = [np.prod([beside[each] for each in of], axis=0) for of in slot_sets(labels.ndim)]
    return [1.0 + each for each in products]


def slot_dfs(labels: AnyArray) -> tuple[int, ...]:
    """Return the degrees of freedom of each slot: its words beyond one a class.

    >>> slot_dfs(np.array([[0, 0, 1], [0, 0, 1]]))  # the third word is of a class of its own
    (1, 1)
    """
    classes = SlotExchange.of(labels).classes
    return tuple(int(each.size - each.max() - 1) for each in classes)


def joined_samples(
    point: FloatArray, samples: FloatArray, dfs: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return figures on samples of all slots, from those of each set of slots, and their df.

        V = max( Σ_S (-1)^(|S| + 1) V_S, V_all )
        sample = point + Σ_s (sample_s - point) · √(V / Σ_s V_s)
        df = (Σ_s V_s)² / Σ_s (V_s² / df_s)

    V_S is the variance over the samples of the set S. That of one slot s holds what its words do
    alone, and what they do together with those of the others: this stands in each of the V_s, and
    is taken off by the sets of several slots, so that it counts once.

    Args:
        point: The figures, any shape.
        samples: Each on the samples of each set, ``float64[S, b, ...]``, as ``slot_sets`` has
            them; one set alone is taken as it is.
        dfs: The degrees of freedom of each slot.

    Returns:
        The samples ``float64[b, ...]``, and the degrees of freedom of each figure.

    >>> samples = np.array([[[0.0], [2.0]], [[1.0], [1.0]], [[1.0], [1.0]]])
    >>> found, df = joined_samples(np.array([1.0]), samples, (4, 2))
    >>> found.ravel().tolist(), df.tolist()
    ([0.0, 2.0], [4.0])

    Source:
        Cameron, Gelbach and Miller, "Robust inference with multiway clustering", JBES 2011;
        Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics 1946.
    """
    n_slots = len(dfs)
    if n_slots == 1:
        return samples[0], np.full(np.shape(point), float(dfs[0]))
    variance = spread(np.moveaxis(samples, 1, -1)) ** 2
    signs = np.array([-1.0 if len(each) % 2 == 0 else 1.0 for each in slot_sets(n_slots)])
    total = np.maximum(np.tensordot(signs, variance, axes=1), variance[-1])
    single, known = variance[:n_slots], np.array(dfs, dtype=np.float64)
    both = single.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where(both == 0, 0.0, np.sqrt(total / both))
        df = np.where(both == 0, known.sum(), both**2 / np.tensordot(1 / known, single**2, axes=1))
    return point + (samples[:n_slots] - point).sum(axis=0) * scale, df
