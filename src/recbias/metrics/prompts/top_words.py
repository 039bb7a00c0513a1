"""The words that stand most often in the names of the items recommended under each label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Gt

from recbias.core.arrays import FloatArray, Ids, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.slot_counts import (
    check_attribute,
    items_of_units,
    known_items,
    say_without,
)
from recbias.metrics.prompts.template_design import labelled, nothing_asked

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None

WORD = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
"""Letters, with apostrophes between them; digits and signs part words."""

_STOP_WORDS = """
    a about after all also an and any are as at be been before both but by can co could did do does
    down each for from had has have he her here his how i if in inc into is it its just llc ltd me
    more most my no nor not of off on only or other our out over own s same she so some such t than
    that the their them then there these they this those through to too under up very was we were
    what when where which who why will with you your
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing of a place, a film or a book."""


@dataclass(frozen=True, kw_only=True)
class TopWords:
    """The words that stand most often in the names of what is recommended under each label.

        count(w, l) = Σ over the places of the lists of l of the times w stands in the name

    Words are runs of letters, in lower case, with apostrophes inside them (``joe's``). Counts are
    raw: repeats of an item count, and nothing is scaled, so compare them under labels of equally
    many queries. Each label value has its own ``n`` words, most frequent first, ties in the order
    of the alphabet. Items without a name, or outside the catalogue, are left out and counted in a
    warning. ``n`` of a figure is the number of lists of the label. Undefined (NaN) where none of
    them holds a word.

    Args:
        label: A label of the queries, or a crossing of several.
        attribute: The column of the items that holds their names.
        n: How many words of each label value are reported.
        stop_words: Leave out English words that say nothing, such as ``the``.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: No query carries the label, or the items have no such column.
        NothingLeft: The label has one value only, or no item has a name.

    Range:
        0 or more; undefined where no list of the label holds a word.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, figure 4.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    label: str
    attribute: str = "title"
    n: Annotated[int, Gt(0)] = 20
    stop_words: bool = True
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the labels and attributes alone."""
        check_attribute(evidence, self.attribute)
        labelled(evidence, self.label)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the most frequent words of each label value with their counts."""
        evidence.need("lists")
        check_attribute(evidence, self.attribute)
        if nothing := nothing_asked(evidence):
            return nothing
        groups = labelled(evidence, self.label)
        if groups.missing:
            left = f"{groups.missing:,} queries carry no {self.label}, and are left out"
            warn(f"{evidence.metric}: {left}")
        names = known_items(evidence).column(self.attribute)
        held = items_of_units(evidence, groups.codes, len(groups.names), k=self.k)
        say_without(evidence, held, names.notna().to_numpy(), self.attribute)
        words, matrix = self._words(names)
        counts = (held @ matrix).toarray()
        return [
            figure
            for name, n, row in zip(groups.names, groups.counts.tolist(), counts, strict=True)
            for figure in self._figures(name, n, words, row)
        ]

    def _words(self, names: pd.Series[str]) -> tuple[Ids, Matrix]:
        """Return the words, sorted, and how often each stands in each name: CSR (items, words)."""
        from scipy.sparse import coo_array

        texts = names.reset_index(drop=True).dropna().astype(str).str.lower()
        found = texts.str.findall(WORD).explode().dropna()
        if self.stop_words:
            found = found[~found.isin(STOP_WORDS)]
        codes, words = pd.factorize(found, sort=True)
        shape = (len(names), len(words))
        matrix = coo_array((np.ones(codes.size), (found.index.to_numpy(), codes)), shape=shape)
        return np.asarray(words, dtype=object), matrix.tocsr()

    def _figures(self, group: str, n: int, words: Ids, counts: FloatArray) -> list[Measurement]:
        order = np.argsort(-counts, kind="stable")[: self.n]
        order = order[counts[order] > 0]
        if not order.size:
            return [Measurement(np.nan, n=0, undefined=n, group=group)]
        return [
            Measurement(
                float(counts[at]), n=n, undefined=0, group=group, target=f"word={words[at]}"
            )
            for at in order
        ]
