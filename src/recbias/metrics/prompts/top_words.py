"""The most frequent words in the names of the items recommended under each label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from annotated_types import Gt

from recbias.core.arrays import FloatArray, Ids, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.prompts.label_metric import LabelMetric
from recbias.metrics.prompts.query_labels import group_queries, warn_unlabelled
from recbias.metrics.prompts.slot_counts import (
    Cutoff,
    count_items,
    require_items,
    warn_missing_attribute,
)

WORD = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
"""Letters with apostrophes between them; digits and punctuation separate words."""

_STOP_WORDS = """
    a about after all also an and any are as at be been before both but by can co could did do does
    down each for from had has have he her here his how i if in inc into is it its just llc ltd me
    more most my no nor not of off on only or other our out over own s same she so some such t than
    that the their them then there these they this those through to too under up very was we were
    what when where which who why will with you your
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words without information on an item."""


@dataclass(frozen=True, kw_only=True)
class TopWords(LabelMetric):
    """The most frequent words in the names of the items recommended under each label.

        count(w, l) = Σ over the positions of the lists of l of the occurrences of w in the name

    Words are sequences of letters, in lower case, with apostrophes inside them (``joe's``). Counts
    are not normalised, and repeated items count: compare only labels with equally many queries.
    The ``n`` most frequent words of each label value are reported, most frequent first, ties in
    alphabetical order. Items without a name or outside the catalogue are excluded and counted in a
    warning. The ``n`` of an estimate is the number of lists of the label value. Undefined (NaN) if
    none of them holds a word.

    Args:
        attribute: The column of the items that holds their names.
        n: The number of words reported for each label value.
        stop_words: Exclude English stop words such as ``the``.

    Raises:
        NothingLeft: The label has one value only, or no item has a name.

    Range:
        0 or more; undefined if no list of the label holds a word.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, figure 4.
    """

    direction: ClassVar[Direction] = "none"

    attribute: str = "title"
    n: Annotated[int, Gt(0)] = 20
    stop_words: bool = True
    k: Cutoff = None

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        groups = group_queries(evidence, self.label)
        warn_unlabelled(evidence, self.label, groups.missing)
        names = require_items(evidence).column(self.attribute)
        items = count_items(evidence, groups.codes, len(groups.names), k=self.k)
        warn_missing_attribute(evidence, items, names.notna().to_numpy(), self.attribute)
        words, matrix = self._count_words(names)
        counts = (items @ matrix).toarray()
        return [
            measurement
            for group, name in enumerate(groups.names)
            for measurement in self._measure_group(
                name, int(groups.counts[group]), words, counts[group]
            )
        ]

    def _count_words(self, names: pd.Series[str]) -> tuple[Ids, Matrix]:
        """Return the words, sorted, and their number in each name: CSR ``(n_items, n_words)``."""
        from scipy.sparse import coo_array

        texts = names.reset_index(drop=True).dropna().astype(str).str.lower()
        occurrences = texts.str.findall(WORD).explode().dropna()
        if self.stop_words:
            occurrences = occurrences[~occurrences.isin(STOP_WORDS)]
        codes, words = pd.factorize(occurrences, sort=True)
        cells = (np.ones(codes.size), (occurrences.index.to_numpy(), codes))
        matrix = coo_array(cells, shape=(len(names), len(words)))
        return np.asarray(words, dtype=object), matrix.tocsr()

    def _measure_group(
        self, group: str, n: int, words: Ids, counts: FloatArray
    ) -> list[Measurement]:
        order = np.argsort(-counts, kind="stable")[: self.n]
        order = order[counts[order] > 0]
        if not order.size:
            return [Measurement(np.nan, n=0, undefined=n, group=group)]
        return [
            Measurement(
                float(counts[code]), n=n, undefined=0, group=group, target=f"word={words[code]}"
            )
            for code in order
        ]
