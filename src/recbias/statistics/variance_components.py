"""How the variance of a crossed design splits over its factors: label, name, template and rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray

PARTS = ("label", "name", "template", "rest")
"""The parts, in the order in which they are taken out of the variance."""


@dataclass(frozen=True, eq=False)
class Crossed:
    """Values by name and template, names nested in labels.

    Args:
        n: Values of each cell, ``float64[names, templates]``.
        sums: Their sums.
        squares: The sum of the squares of each name's values, ``float64[names]``.
        labels: The label of each name, ``int[names]`` from 0.
    """

    n: FloatArray
    sums: FloatArray
    squares: FloatArray
    labels: AnyArray

    @classmethod
    def of(
        cls, values: FloatArray, names: AnyArray, templates: AnyArray, labels: AnyArray
    ) -> Crossed:
        """Return the design of single values; names without a value are left out.

        Args:
            values: ``float64[v]``; NaN is left out.
            names: The name of each value, ``int[v]`` from 0.
            templates: Its template.
            labels: The label of each name, ``int[names]``.
        """
        known = ~np.isnan(values)
        values, names, templates = values[known], names[known], templates[known]
        values = values - values.mean() if values.size else values  # the sums keep their digits
        shape = (labels.size, int(templates.max(initial=-1)) + 1)
        cells = names * shape[1] + templates
        n = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        sums = np.bincount(cells, weights=values, minlength=n.size).reshape(shape)
        squares = np.bincount(names, weights=values**2, minlength=labels.size)
        rows, columns = n.sum(axis=1) > 0, n.sum(axis=0) > 0
        return cls(n[rows][:, columns], sums[rows][:, columns], squares[rows], labels[rows])

    @property
    def balanced(self) -> bool:
        """Whether every name stands in every template equally often."""
        return bool(self.n.size) and bool((self.n == self.n.flat[0]).all())

    @property
    def of_labels(self) -> BoolArray:
        """Which names are of each label that occurs, ``bool[labels, names]``."""
        found: BoolArray = np.unique(self.labels)[:, None] == self.labels[None, :]
        return found


def squares_of(design: Crossed, weights: FloatArray | None = None) -> FloatArray:
    """Return the sequential sums of squares of label, name, template and rest, ``float64[b, 4]``.

    Each part is what the least-squares fit gains by it after those before it: label means, then
    name means within labels, then template effects beside the names; the rest is what is left,
    the total less the three. In a balanced design the order does not matter and the parts are
    those of the textbook.

    Args:
        design: The values.
        weights: How often each name counts in each sample, ``float64[b, names]``; by default one
            sample in which each counts once.

    >>> values, names = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1])
    >>> design = Crossed.of(values, names, np.array([0, 1, 0, 1]), labels=np.array([0, 1]))
    >>> squares_of(design).round(9).tolist()  # label means 1.5, 4.5; template means 2, 4; 14
    [[9.0, 0.0, 4.0, 1.0]]

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, chapters 4 and 5.
    """
    given = np.ones((1, len(design.labels))) if weights is None else weights
    n, sums = design.n.sum(axis=1), design.sums.sum(axis=1)
    members = design.of_labels.T.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (given @ sums) ** 2 / (given @ n)
        label = np.nan_to_num(((given * sums) @ members) ** 2 / ((given * n) @ members))
    label_total, name_total = label.sum(axis=1), given @ (sums**2 / n)
    template = _template_squares(design, given)
    total = given @ design.squares
    rest = np.maximum(total - name_total - template, 0.0)
    found = np.stack([label_total - mean, name_total - label_total, template, rest], axis=1)
    return np.where(np.abs(found) < _TINY * total[:, None], 0.0, found)


def components_of(design: Crossed, weights: FloatArray | None = None) -> FloatArray:
    """Return the variance components by the method of moments, ``float64[b, 4]``.

        rest = MS_r,    template = (MS_t - MS_r) / (r N),    name = (MS_n - MS_r) / (r T),
        label = (MS_l - MS_n) / (r T n0),    n0 = (N - Σ n_l² / N) / (L - 1)

    for N names of L labels, n_l each, in T templates, r values a cell; MS are the mean squares of
    a balanced design. A negative component is 0. With one name a label there is no MS_n: the name
    is 0, and the label has what the two have together.

    Args:
        design: A balanced design.
        weights: How often each name counts in each sample.

    Returns:
        NaN where a mean square has no degree of freedom.

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, section 4.4.
    """
    given = np.ones((1, len(design.labels))) if weights is None else weights
    squares = squares_of(design, given)
    sizes = given @ design.of_labels.T
    n, labels = sizes.sum(axis=1), (sizes > 0).sum(axis=1)
    templates, repeats = design.n.shape[1], float(design.n.flat[0])
    df_rest = repeats * n * templates - n - templates + 1.0
    df = np.stack([labels - 1.0, n - labels, np.full(len(n), templates - 1.0), df_rest], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = squares / np.where(df > 0, df, np.nan)
        size = (n - (sizes**2).sum(axis=1) / n) / (labels - 1.0)
        of_name = np.where(df[:, 1] > 0, mean[:, 1], mean[:, 3])
        label = (mean[:, 0] - of_name) / (repeats * templates * size)
        name = (of_name - mean[:, 3]) / (repeats * templates)
        template = (mean[:, 2] - mean[:, 3]) / (repeats * n)
    found = np.stack([label, name, template, mean[:, 3]], axis=1)
    return np.asarray(np.maximum(found, 0.0))


_TINY = 1e-13
"""A part below this share of the total is rounding."""


def _template_squares(design: Crossed, weights: FloatArray) -> FloatArray:
    """Return what template effects gain beside name effects, ``float64[b]``."""
    n = design.n.sum(axis=1)
    shares = design.n / n[:, None]
    residues = design.sums - shares * design.sums.sum(axis=1)[:, None]
    own = weights @ design.n
    shared = weights @ (design.n[:, :, None] * shares[:, None, :]).reshape(len(n), -1)
    templates = own.shape[1]
    normal = own[:, :, None] * np.eye(templates) - shared.reshape(-1, templates, templates)
    right = weights @ residues
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    return np.asarray(np.einsum("bi,bij,bj->b", right, inverse, right))
