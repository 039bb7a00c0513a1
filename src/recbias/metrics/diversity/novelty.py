"""How surprising the recommended items are by how few users know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.counted_popularity import (
    add_counted_interval,
    differentiate_logarithms,
    weigh_averages,
)
from recbias.metrics.popularity.item_popularity import (
    aggregate_lists,
    average_rows,
    build_list_matrix,
)


@dataclass(frozen=True, kw_only=True)
class SelfInformation:
    """The mean self-information of the recommended items, in bits.

        I@k(u) = ( 1 / |L_u| ) Σ_{i in L_u} log2( U / n_i )

    L_u is the list of user u cut at k, U the number of users with a training interaction, n_i the
    number of those with one with item i. 0 is an item that every user has, log2 U one that a
    single user has: a list of rare items is novel. Items without a training interaction have no
    finite value; they are excluded and counted in a warning, while RecTools gives them n_i = 1.
    Undefined for a list without an item that has a training interaction.

    The interval refers to all users that could be sampled, of whom those
    of the training data are a sample: it includes the sampling error of the counts, and is moved
    by their bias. Tests and the intervals of groups (``by``) treat the counts as known.

    Args:
        k: How many ranks of each list are evaluated; by default all.

    Range:
        0 or more, at most log2 U; undefined for an empty list.

    Source:
        Zhou, Kuscsik, Liu, Medo, Wakeling and Zhang, "Solving the apparent diversity-accuracy
        dilemma of recommender systems", PNAS 2010, surprisal.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train"})
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Annotated[int, Gt(0)] | None = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        evidence.need("train")
        histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
        n_users = np.count_nonzero(np.diff(histories.indptr))
        counts = np.bincount(histories.indices, minlength=histories.shape[1])
        bits = np.where(counts > 0, np.log2(max(n_users, 1) / np.maximum(counts, 1)), np.nan)
        values = aggregate_lists(evidence, bits, average_rows, self.k)
        weights = weigh_averages(build_list_matrix(evidence, self.k), counts > 0)
        slopes, curvatures = differentiate_logarithms([weights], counts.astype(float), base=0.5)
        measurement = evidence.measure_queries(values)
        return [add_counted_interval(measurement, evidence, None, slopes, curvatures)]
