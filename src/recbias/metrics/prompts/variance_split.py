"""How much of what is recommended turns on the label, the name that carries it, or the wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import Contradiction, UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.filled_words import TEMPLATE
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.slot_counts import item_levels, items_of_units, say_without
from recbias.metrics.prompts.template_design import design_of, nothing_asked, template_codes
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.variance_components import (
    PARTS,
    CrossedDesign,
    compute_sums_of_squares,
    estimate_components,
)

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None


@dataclass(frozen=True, kw_only=True)
class VarianceSplit:
    """How much of the variance between lists comes from the label, the name and the wording.

        y(name, template) = label + name within label + template + rest
        share(part) = SS_part / SS_total                 squares
        share(part) = σ²_part / Σ σ²                     components

    y is the mean level of the attribute over the places of a list (``$`` to ``$$$$`` is 1 to 4).
    ``label`` is between label values, ``name`` between the words that carry one value,
    ``template`` between sentences, ``rest`` what sentences do to some names and not to others.
    The four shares sum to 1. Sums of squares are sequential, label, name, template: with every
    name in every template the order does not matter; otherwise each part is what the
    least-squares fit gains by it after those before. They describe the lists at hand, and names
    and templates get a share by chance too; ``components`` (method of moments) take that share
    out, negative ones set to 0, and need every name in every template equally often. Undefined
    (NaN) where all lists have one level, and components where a list has none.

    Intervals of ``squares`` come from a bootstrap over names within their label, with Student's t
    for few, the sentences as they are. ``components`` have none: each share turns on how far
    sentences like these lie apart, which a few sentences tell too little of. Neither have labels
    that the words of several slots carry together. ``n`` counts the names (combinations of words),
    ``undefined`` those whose lists hold no item with a level.

    Args:
        label: A label of the queries, or a crossing of several.
        attribute: A numeric column of the items, or one of repeated signs.
        form: Shares of the sums of squares, or of the variance components.
        words: The column of the words that carry the label; by default it is found.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: No query carries the label or a template, or the items have no such column.
        NothingLeft: The label has one value only, or every item lacks the attribute.
        Contradiction: ``components`` of names that are not all in every template equally often.

    Range:
        0 to 1, the four parts sum to 1; undefined where nothing varies.

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, chapters 4 and 5.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    label: str
    attribute: str
    form: Literal["squares", "components"] = "squares"
    words: str | None = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the labels and attributes alone."""
        item_levels(evidence, self.attribute)
        self._design(evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the share of each part."""
        evidence.need("lists")
        levels = item_levels(evidence, self.attribute)
        if nothing := nothing_asked(evidence):
            return nothing
        design, template = self._design(evidence)
        values = _list_levels(evidence, design, levels, self)
        crossed = _crossed(design, template, values)
        kept = np.isin(np.arange(design.group.size), design.queries[~np.isnan(values)])
        shares = self._shares(evidence, crossed, None)[0]
        found = [
            Measurement(
                value=float(share),
                n=0 if np.isnan(share) else int(kept.sum()),
                undefined=kept.size if np.isnan(share) else int((~kept).sum()),
                target=part,
            )
            for part, share in zip(PARTS, shares, strict=True)
        ]
        if self.form == "components" or design.df == 0:
            return found
        (weights,) = design.weights(evidence.n_bootstrap, evidence.rng())
        replicates = self._shares(evidence, crossed, weights[:, kept])
        low, high = bootstrap_t_interval(shares, replicates.T, design.df)
        return [
            replace(
                each,
                ci_low=float(low[place]),
                ci_high=float(high[place]),
                replicates=replicates[:, place],
                df=float(design.df),
            )
            for place, each in enumerate(found)
        ]

    def _design(self, evidence: Evidence) -> tuple[Design, AnyArray]:
        """Return the names, and the template of each query."""
        design = design_of(evidence, self.label, "name", self.words)
        if TEMPLATE not in evidence.queries.labels.names:
            found, remedy = "the queries have no column 'template'", "make them from templates"
            raise UnknownColumn(found, remedy=remedy)
        template = template_codes(evidence)
        inside = (design.queries >= 0).astype(np.float64)
        planned = _crossed(design, template, np.where(inside > 0, inside, np.nan))
        if self.form == "components" and not planned.balanced:
            found = "not every name stands in every template equally often"
            raise Contradiction(found, where="form", remedy="write form: squares")
        if design.df == 0 and design.independent:
            said = "one word carries each value, so that name and label cannot be told apart"
            warn(f"{evidence.metric}: of {self.label} {said}")
        return design, template

    def _shares(
        self, evidence: Evidence, crossed: CrossedDesign, weights: FloatArray | None
    ) -> FloatArray:
        n_samples = 1 if weights is None else len(weights)
        if self.form == "components" and not crossed.balanced:
            if weights is None:
                said = "form: components needs an item with a level in every list"
                warn(f"{evidence.metric}: {said}")
            return np.full((n_samples, len(PARTS)), np.nan)
        if weights is not None and np.isnan(weights).any():
            return np.full((n_samples, len(PARTS)), np.nan)
        split = compute_sums_of_squares if self.form == "squares" else estimate_components
        parts = split(crossed, weights)
        with np.errstate(invalid="ignore"):
            return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _list_levels(
    evidence: Evidence, design: Design, levels: FloatArray, metric: VarianceSplit
) -> FloatArray:
    """Return the mean level of each list of a labelled query, ``float64[q]``; NaN for others."""
    n = len(evidence.queries)
    held = items_of_units(evidence, np.where(design.queries >= 0, np.arange(n), -1), n, k=metric.k)
    known = ~np.isnan(levels)
    say_without(evidence, held, known, metric.attribute)
    with np.errstate(invalid="ignore"):
        return np.asarray((held @ np.nan_to_num(levels)) / (held @ known.astype(np.float64)))


def _crossed(design: Design, template: AnyArray, values: FloatArray) -> CrossedDesign:
    inside = design.queries >= 0
    names, templates = design.queries[inside], template[inside]
    return CrossedDesign.from_values(values[inside], names, templates, design.group)
