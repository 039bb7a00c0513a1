"""Variance components of a crossed design: label, name within label, template, residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray

PARTS = ("label", "name", "template", "rest")
"""The components, in the order of the sequential sums of squares."""


@dataclass(frozen=True, eq=False)
class CrossedDesign:
    """Values by name and template, names nested in labels.

    ``n`` and ``sums`` are those of the values of each cell, ``float64[names, templates]``;
    ``squares`` the sums of squares of each name, and ``labels`` its label, from 0.
    """

    n: FloatArray
    sums: FloatArray
    squares: FloatArray
    labels: AnyArray

    @classmethod
    def from_values(
        cls, values: FloatArray, names: AnyArray, templates: AnyArray, labels: AnyArray
    ) -> CrossedDesign:
        """Return the design of single values, with the name and template of each, from 0.

        Values of NaN, and names without a value, are excluded; ``labels`` are those of the names.
        """
        defined = ~np.isnan(values)
        values, names, templates = values[defined], names[defined], templates[defined]
        if values.size:
            values = values - values.mean()  # sums of centred values keep their digits
        shape = (labels.size, int(templates.max(initial=-1)) + 1)
        cells = names * shape[1] + templates
        n = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        sums = np.bincount(cells, weights=values, minlength=n.size).reshape(shape)
        squares = np.bincount(names, weights=values**2, minlength=labels.size)
        rows, columns = n.sum(axis=1) > 0, n.sum(axis=0) > 0
        return cls(n[rows][:, columns], sums[rows][:, columns], squares[rows], labels[rows])

    @property
    def label_members(self) -> BoolArray:
        """The names of each label, ``bool[labels, names]``."""
        members: BoolArray = np.unique(self.labels)[:, None] == self.labels[None, :]
        return members


def compute_sums_of_squares(
    design: CrossedDesign, weights: FloatArray | None = None
) -> FloatArray:
    """Return the sequential sums of squares of the four components, ``float64[b, 4]``.

    Each sum of squares is the reduction of the residual by its factor after those before it: label
    means, then name means within labels, then template effects; the residual is the remainder. In
    a balanced design the order does not matter. ``weights`` are the counts of each name in each
    sample, ``float64[b, names]``; by default one sample with all names once.

    >>> values, names = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1])
    >>> templates, labels = np.array([0, 1, 0, 1]), np.array([0, 1])
    >>> design = CrossedDesign.from_values(values, names, templates, labels)
    >>> compute_sums_of_squares(design).round(9).tolist()  # label means 1.5, 4.5; total 14
    [[9.0, 0.0, 4.0, 1.0]]

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, chapters 4 and 5.
    """
    weights_by_sample = np.ones((1, len(design.labels))) if weights is None else weights
    n, sums = design.n.sum(axis=1), design.sums.sum(axis=1)
    members = design.label_members.T.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (weights_by_sample @ sums) ** 2 / (weights_by_sample @ n)
        label = np.nan_to_num(
            ((weights_by_sample * sums) @ members) ** 2 / ((weights_by_sample * n) @ members)
        )
    label_total, name_total = label.sum(axis=1), weights_by_sample @ (sums**2 / n)
    template = _template_squares(design, weights_by_sample)
    total = weights_by_sample @ design.squares
    residual = np.maximum(total - name_total - template, 0.0)
    squares = np.stack([label_total - mean, name_total - label_total, template, residual], axis=1)
    return np.where(np.abs(squares) < _TINY * total[:, None], 0.0, squares)


def estimate_components(design: CrossedDesign, weights: FloatArray | None = None) -> FloatArray:
    """Return the variance components of a balanced design by the method of moments, ``[b, 4]``.

        rest = MS_r,    template = (MS_t - MS_r) / (r N),    name = (MS_n - MS_r) / (r T),
        label = (MS_l - MS_n) / (r T n0),    n0 = (N - Σ n_l² / N) / (L - 1)

    for N names of L labels, n_l each, T templates and r values per cell; MS are the mean squares
    of a balanced design. Negative components are set to 0. With one name per label there is no
    MS_n: the component of the name is 0 and that of the label includes it. NaN if a mean square
    has no degrees of freedom. ``weights`` are as for ``compute_sums_of_squares``.

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, section 4.4.
    """
    weights_by_sample = np.ones((1, len(design.labels))) if weights is None else weights
    squares = compute_sums_of_squares(design, weights_by_sample)
    sizes = weights_by_sample @ design.label_members.T
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
    components = np.stack([label, name, template, mean[:, 3]], axis=1)
    return np.asarray(np.maximum(components, 0.0))


_TINY = 1e-13
"""A sum of squares below this share of the total is a rounding error."""


def _template_squares(design: CrossedDesign, weights: FloatArray) -> FloatArray:
    """Return the sum of squares of templates given the names, ``float64[b]``."""
    n = design.n.sum(axis=1)
    shares = design.n / n[:, None]
    residues = design.sums - shares * design.sums.sum(axis=1)[:, None]
    diagonal = weights @ design.n
    shared = weights @ (design.n[:, :, None] * shares[:, None, :]).reshape(len(n), -1)
    templates = diagonal.shape[1]
    normal = diagonal[:, :, None] * np.eye(templates) - shared.reshape(-1, templates, templates)
    right = weights @ residues
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    return np.asarray(np.einsum("bi,bij,bj->b", right, inverse, right))
