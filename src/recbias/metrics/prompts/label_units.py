"""The units that carry a label: what is counted, resampled and exchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.queries.groups import Groups
from recbias.metrics.prompts.filled_words import TEMPLATE
from recbias.statistics.bootstrap.cluster_bootstrap import sample_cluster_weights
from recbias.statistics.bootstrap.slot_bootstrap import (
    combine_slot_samples,
    count_slot_dfs,
    sample_slot_weights,
)


@dataclass(frozen=True, eq=False)
class Design:
    """The units that carry a label.

    Args:
        unit: What they are: ``name``, ``template``, or what a query is.
        groups: The label values.
        ids: What each unit is called, ``object[u]``.
        queries: The unit of each query, ``int[q]``; -1 for those without the label.
        group: The label value of each unit, ``int[u]``.
        stratum: Units of one stratum stand in the same templates: labels are exchanged among them.
        cluster: What is resampled together, ``int[u]``; one where units share words.
        sentences: The number of queries of each unit, ``float64[u]``.
        words: The word of each unit in each slot, ``int[f, u]``, every combination once, in their
            order: where the words of several slots carry the label; None elsewhere.
    """

    unit: str
    groups: Groups
    ids: Ids
    queries: AnyArray
    group: AnyArray
    stratum: AnyArray
    cluster: AnyArray
    sentences: FloatArray
    words: AnyArray | None = None

    @property
    def independent(self) -> bool:
        """Whether no unit has to do with another: names that share nothing."""
        return self.cluster.size == 0 or int(self.cluster.max()) + 1 == self.cluster.size

    @property
    def paired(self) -> bool:
        """Whether the label values share their units, as they share templates."""
        return self.unit == TEMPLATE

    @property
    def cluster_strata(self) -> AnyArray:
        """Within what each cluster is resampled: names within their label, ``int[n]``."""
        strata = np.zeros(int(self.cluster.max(initial=-1)) + 1, dtype=np.intp)
        if not self.paired:
            strata[self.cluster] = self.group
        return strata

    @property
    def df(self) -> int:
        """How many clusters there are beyond one a stratum."""
        strata = self.cluster_strata
        return int(strata.size - np.unique(strata).size)

    @property
    def crossing(self) -> AnyArray:
        """The label value of every combination of words, ``int[n1, n2, ...]``."""
        words = np.empty((0, 0)) if self.words is None else self.words
        return self.group.reshape(words.max(axis=1) + 1)

    def weights(self, n_samples: int, rng: np.random.Generator) -> list[FloatArray]:
        """Return how often each unit stands in each bootstrap sample, ``float64[b, u]``.

        There is one set of samples; where the words of several slots carry the label, one of each
        set of slots. Labels of one cluster have no samples: NaN.
        """
        if self.words is not None:
            return sample_slot_weights(self.crossing, n_samples, rng)
        return [sample_cluster_weights(self.cluster_strata, n_samples, rng)[:, self.cluster]]

    def joined(self, point: FloatArray, samples: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return figures on bootstrap samples of the whole design, and their df.

        Args:
            point: The figures, ``float64[...]``.
            samples: Each on the samples of each set of ``weights``, ``float64[S, b, ...]``.
        """
        dfs = (self.df,) if self.words is None else count_slot_dfs(self.crossing)
        return combine_slot_samples(point, samples, dfs)

    def count(self, held: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return how many names or templates hold each thing, and how many do not, ``int[m]``.

        Where the words of several slots carry the label, the words of all slots are counted.

        Args:
            held: Which units hold it, ``bool[u, m]``; a template has a unit with each label value.
        """
        ways = self.cluster[None] if self.words is None else self.words
        n, every = np.zeros(held.shape[1], dtype=np.intp), 0
        for way in ways:
            found = np.zeros((int(way.max(initial=-1)) + 1, held.shape[1]), dtype=bool)
            np.logical_or.at(found, way, held)
            n += np.count_nonzero(found, axis=0)
            every += np.unique(way).size
        return n, every - n

    def take(self, units: AnyArray) -> Design:
        """Return the design of some of the units; ``queries`` is emptied."""
        names = ("ids", "group", "stratum", "cluster", "sentences")
        kept = {name: vars(self)[name][units] for name in names}
        words = None if self.words is None else self.words[:, units]
        return replace(self, queries=np.empty(0, dtype=np.intp), words=words, **kept)
