"""The bootstrap of estimates over all combinations of the words of several slots."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.bootstrap.cluster_bootstrap import sample_cluster_weights
from recbias.statistics.intervals import bootstrap_standard_error
from recbias.statistics.permutation.slot_permutation import SlotExchange


def list_slot_sets(n_slots: int) -> list[tuple[int, ...]]:
    """Return all sets of slots, in order of size.

    >>> list_slot_sets(2)
    [(0,), (1,), (0, 1)]
    """
    sizes = range(1, n_slots + 1)
    return [slots for size in sizes for slots in combinations(range(n_slots), size)]


def sample_slot_weights(
    labels: AnyArray, n_samples: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Return the bootstrap weights of each set of slots, in the order of ``list_slot_sets``.

        weight of a combination = 1 + Π_{s in S} (w_s - 1)

    w_s is the count of its word of slot s in the sample: each slot is resampled separately, within
    the class (gender) of the words, with mean 1. A single slot is resampled directly; a set of
    several slots resamples the interaction of their words, but not their separate effects.
    ``labels[n1, n2, ...]`` are those of every combination of words. The weights are
    ``float64[b, n1 n2 ...]`` each; NaN if a word is the only one of its class.

    >>> square = np.array([[0, 0], [0, 0]])
    >>> [weights.shape for weights in sample_slot_weights(square, 5, np.random.default_rng(0))]
    [(5, 4), (5, 4), (5, 4)]
    """
    words = np.indices(labels.shape).reshape(labels.ndim, -1)
    deviations = []
    for strata, word_codes in zip(SlotExchange.from_labels(labels).classes, words, strict=True):
        sizes = np.bincount(strata)[strata].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = sample_cluster_weights(strata, n_samples, rng) * (sizes / (sizes - 1.0))
        deviations.append(weights[:, word_codes] - 1.0)
    return [
        1.0 + np.prod([deviations[slot] for slot in slots], axis=0)
        for slots in list_slot_sets(labels.ndim)
    ]


def count_slot_dfs(labels: AnyArray) -> tuple[int, ...]:
    """Return the degrees of freedom of each slot: its number of words minus number of classes.

    >>> count_slot_dfs(np.array([[0, 0, 1], [0, 0, 1]]))  # the third word has its own class
    (1, 1)
    """
    classes = SlotExchange.from_labels(labels).classes
    return tuple(int(slot_classes.size - slot_classes.max() - 1) for slot_classes in classes)


def combine_slot_samples(
    point: FloatArray, samples: FloatArray, dfs: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Combine the samples of all sets of slots into samples of the estimates, with their df.

        V = max( Σ_S (-1)^(|S| + 1) V_S, V_all )
        sample = point + Σ_s (sample_s - point) · √(V / Σ_s V_s)
        df = (Σ_s V_s)² / Σ_s (V_s² / df_s)

    V_S is the variance over the samples of the set S. The variance of one slot s holds the effects
    of its words and their interaction with the other slots; the interaction is part of every V_s
    and is subtracted by the sets of several slots, so that it counts once.

    The samples are ``float64[S, b, ...]``, in the order of ``list_slot_sets``, and the combined
    ones ``float64[b, ...]``; those of a single slot are returned unchanged.

    >>> samples = np.array([[[0.0], [2.0]], [[1.0], [1.0]], [[1.0], [1.0]]])
    >>> combined, df = combine_slot_samples(np.array([1.0]), samples, (4, 2))
    >>> combined.ravel().tolist(), df.tolist()
    ([0.0, 2.0], [4.0])

    Source:
        Cameron, Gelbach and Miller, "Robust inference with multiway clustering", JBES 2011;
        Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics 1946.
    """
    n_slots = len(dfs)
    if n_slots == 1:
        return samples[0], np.full(np.shape(point), float(dfs[0]))
    variance = bootstrap_standard_error(np.moveaxis(samples, 1, -1)) ** 2
    signs = np.array([-1.0 if len(slots) % 2 == 0 else 1.0 for slots in list_slot_sets(n_slots)])
    total = np.maximum(np.tensordot(signs, variance, axes=1), variance[-1])
    single, slot_dfs = variance[:n_slots], np.array(dfs, dtype=np.float64)
    slot_sum = single.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where(slot_sum == 0, 0.0, np.sqrt(total / slot_sum))
        df = np.where(
            slot_sum == 0,
            slot_dfs.sum(),
            slot_sum**2 / np.tensordot(1 / slot_dfs, single**2, axes=1),
        )
    return point + (samples[:n_slots] - point).sum(axis=0) * scale, df
