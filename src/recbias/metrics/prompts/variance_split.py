"""The variance between lists, divided between label, name and wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import Contradiction, UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.label_metric import LabelMetric
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.query_labels import TEMPLATE, encode_templates
from recbias.metrics.prompts.slot_counts import Cutoff, average_levels, read_item_levels
from recbias.metrics.prompts.template_design import build_design
from recbias.statistics.bootstrap.cluster_bootstrap import arcsine_t_interval, logit_t_interval
from recbias.statistics.variance_components import (
    PARTS,
    CrossedDesign,
    compute_sums_of_squares,
    estimate_components,
)


@dataclass(frozen=True, kw_only=True)
class VarianceSplit(LabelMetric):
    """The shares of the variance between lists due to the label, the name and the wording.

        y(name, template) = label + name within label + template + rest
        share(part) = SS_part / SS_total                 squares
        share(part) = σ²_part / Σ σ²                     components

    y is the mean level of the attribute over the positions of a list (``$`` to ``$$$$`` is 1 to
    4). ``label`` is the variance between label values, ``name`` between the words of one label
    value, ``template`` between sentences, ``rest`` the interaction of names and sentences. The
    four shares sum to 1. Sums of squares are sequential: label, name, template. If every name
    is in every template, the order does not matter; otherwise the share of each part is what
    it adds to the least-squares fit after those before. Sums of squares describe these lists, and
    give names and templates a positive share even by chance. ``components`` (method of moments,
    negative ones set to 0) correct for this, and need every name in every template equally often.
    Undefined (NaN) if all lists have the same level, and for components if a list has none.

    Intervals of ``squares`` come from a bootstrap over names within their label, with Student's t
    for few names and the sentences held fixed; those of ``name``, ``template`` and ``rest`` are
    on the scale of the logit, since the variance of a share depends on it. The share of few
    labels may be nearly 0, where the logit varies too much: its interval is on the scale of the
    arcsine of the root. ``components`` have no intervals, since their shares depend on the
    variance between sentences, which a few sentences do not determine. Neither have labels that
    the words of several slots carry together. ``n`` counts the names (combinations of words),
    ``undefined`` those whose lists hold no item with a level.

    Args:
        attribute: A numeric column of the items, or one of repeated signs.
        form: Shares of the sums of squares, or of the variance components.
        words: The column of the words that carry the label; by default it is detected.

    Raises:
        UnknownColumn: No query carries the label or a template, or the items have no such column.
        Contradiction: ``components``, if not every name is in every template equally often.

    Range:
        0 to 1, the four parts sum to 1; undefined if all lists have the same level.

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, chapters 4 and 5.
    """

    direction: ClassVar[Direction] = "none"

    form: Literal["squares", "components"] = "squares"
    words: str | None = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        read_item_levels(evidence, self.attribute)
        self._design(evidence)

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        levels = read_item_levels(evidence, self.attribute)
        design, template = self._design(evidence)
        rows = np.where(design.queries >= 0, np.arange(len(evidence.queries)), -1)
        values = average_levels(evidence, (rows, rows.size), levels, self.attribute, self.k)
        crossed = _cross(design, template, values)
        defined = np.isin(np.arange(design.group.size), design.queries[~np.isnan(values)])
        shares = self._compute_shares(evidence, crossed, None)[0]
        measurements = [
            Measurement(
                value=float(share),
                n=0 if np.isnan(share) else int(defined.sum()),
                undefined=defined.size if np.isnan(share) else int((~defined).sum()),
                target=part,
            )
            for part, share in zip(PARTS, shares, strict=True)
        ]
        if self.form == "components" or design.df == 0:
            return measurements
        (weights,) = design.sample_weights(evidence.n_bootstrap, evidence.rng())
        replicates = self._compute_shares(evidence, crossed, weights[:, defined])
        return [
            _add_interval(measurement, replicates[:, column], float(design.df))
            for column, measurement in enumerate(measurements)
        ]

    def _design(self, evidence: Evidence) -> tuple[Design, AnyArray]:
        """Return the names, and the template of each query."""
        design = build_design(evidence, self.label, "name", self.words)
        if TEMPLATE not in evidence.queries.labels.names:
            message, remedy = "the queries have no column 'template'", "make them from templates"
            raise UnknownColumn(message, remedy=remedy)
        template = encode_templates(evidence)
        crossed = _cross(design, template, np.where(design.queries >= 0, 1.0, np.nan))
        if self.form == "components" and not crossed.balanced:
            message = "not every name is in every template equally often"
            raise Contradiction(message, where="form", remedy="set form: squares")
        if design.df == 0 and design.independent:
            message = "has one word for each value, so that name and label cannot be separated"
            warn(f"{evidence.metric}: {self.label} {message}")
        return design, template

    def _compute_shares(
        self, evidence: Evidence, crossed: CrossedDesign, weights: FloatArray | None
    ) -> FloatArray:
        undefined = np.full((1 if weights is None else len(weights), len(PARTS)), np.nan)
        if self.form == "components" and not crossed.balanced:
            if weights is None:
                message = "form: components needs an item with a level in every list"
                warn(f"{evidence.metric}: {message}")
            return undefined
        if weights is not None and np.isnan(weights).any():
            return undefined
        split = compute_sums_of_squares if self.form == "squares" else estimate_components
        parts = split(crossed, weights)
        with np.errstate(invalid="ignore"):
            return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _cross(design: Design, template: AnyArray, values: FloatArray) -> CrossedDesign:
    labelled = design.queries >= 0
    names, templates = design.queries[labelled], template[labelled]
    return CrossedDesign.from_values(values[labelled], names, templates, design.group)


def _add_interval(measurement: Measurement, replicates: FloatArray, df: float) -> Measurement:
    """Return the share of a part with its interval."""
    make_interval = arcsine_t_interval if measurement.target == PARTS[0] else logit_t_interval
    low, high = make_interval(measurement.value, replicates, df)
    return replace(
        measurement, ci_low=low, ci_high=high, replicates=replicates, df=df, own_interval=True
    )
