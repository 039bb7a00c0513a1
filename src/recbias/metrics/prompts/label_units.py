"""The units that carry a label: the statistics count, resample and permute them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.queries.groups import Groups
from recbias.metrics.prompts.query_labels import TEMPLATE
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
        unit: The kind of unit: ``name``, ``template``, or the unit of the queries.
        groups: The label values.
        ids: The identifier of each unit, ``object[u]``.
        queries: The unit of each query, ``int[q]``; -1 for those without the label.
        group: The label value of each unit, ``int[u]``.
        stratum: Units of one stratum occur in the same templates; labels are permuted within it.
        cluster: Units of one cluster are resampled together, ``int[u]``; a single cluster if units
            share words.
        sentences: The number of queries of each unit, ``float64[u]``.
        words: The word of each unit in each slot, ``int[f, u]``, with all combinations in order,
            if the words of several slots carry the label; otherwise None.
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
        """Whether each unit is a cluster of its own."""
        return self.cluster.size == 0 or int(self.cluster.max()) + 1 == self.cluster.size

    @property
    def paired(self) -> bool:
        """Whether the label values share their units, which are templates."""
        return self.unit == TEMPLATE

    @property
    def cluster_strata(self) -> AnyArray:
        """The stratum in which each cluster is resampled: names within their label, ``int[n]``."""
        strata = np.zeros(int(self.cluster.max(initial=-1)) + 1, dtype=np.intp)
        if not self.paired:
            strata[self.cluster] = self.group
        return strata

    @property
    def df(self) -> int:
        """Degrees of freedom: the number of clusters minus the number of their strata."""
        strata = self.cluster_strata
        return int(strata.size - np.unique(strata).size)

    @property
    def crossing(self) -> AnyArray:
        """The label value of each combination of words, ``int[n1, n2, ...]``."""
        words = np.empty((0, 0)) if self.words is None else self.words
        return self.group.reshape(words.max(axis=1) + 1)

    def sample_weights(self, n_samples: int, rng: np.random.Generator) -> list[FloatArray]:
        """Return how often each unit is in each bootstrap sample, ``float64[b, u]``.

        There is one set of samples, or one for each set of slots if the words of several slots
        carry the label. A label value of one cluster has NaN.
        """
        if self.words is not None:
            return sample_slot_weights(self.crossing, n_samples, rng)
        return [sample_cluster_weights(self.cluster_strata, n_samples, rng)[:, self.cluster]]

    def combine_samples(
        self, point: FloatArray, samples: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the estimates on bootstrap samples of the whole design, and their df.

        ``samples`` are their values on each set of bootstrap samples, ``float64[S, b, ...]``.
        """
        dfs = (self.df,) if self.words is None else count_slot_dfs(self.crossing)
        return combine_slot_samples(point, samples, dfs)

    def count_units(self, mask: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return how many names or templates are in each column of a mask, and how many are not.

        If the words of several slots carry the label, the words of all slots are counted.

        Args:
            mask: ``bool[u, m]``; a template is one unit for each label value.

        Returns:
            ``int[m]`` and ``int[m]``.
        """
        factors = self.cluster[None] if self.words is None else self.words
        n, total = np.zeros(mask.shape[1], dtype=np.intp), 0
        for codes in factors:
            counted = np.zeros((int(codes.max(initial=-1)) + 1, mask.shape[1]), dtype=bool)
            np.logical_or.at(counted, codes, mask)
            n += np.count_nonzero(counted, axis=0)
            total += np.unique(codes).size
        return n, total - n

    def select(self, units: AnyArray) -> Design:
        """Return the design of some of the units, with empty ``queries``."""
        names = ("ids", "group", "stratum", "cluster", "sentences")
        selected = {name: vars(self)[name][units] for name in names}
        words = None if self.words is None else self.words[:, units]
        return replace(self, queries=np.empty(0, dtype=np.intp), words=words, **selected)
