"""What the gaps between groups are, for the reports."""

from __future__ import annotations

from typing import NamedTuple

MEANS = "m_g is the mean over the queries of g of"
VALUES = "x is, for each query,"
ATKINSON = "e_g = (mean of √x over g)²"


class GapDefinition(NamedTuple):
    """The words for a gap, its formula, what the formula is of, and its range."""

    text: str
    formula: str
    subject: str
    values: str


UNCERTAIN_MEANS = {
    "probability": "m = (P'P)⁻¹ P'x with the probabilities P of the groups and the values x: "
    "right if x is independent of the probability given the group",
    "weight": "m_g = Σ p_g x / Σ p_g with the probabilities p_g of the groups and the values x: "
    "right if x is independent of the group given the probability",
}
"""The means of groups that are known as probabilities, by what is assumed."""

DEFINITIONS = {
    "difference": GapDefinition(
        "difference between the largest and the smallest mean",
        "max m_g - min m_g",
        MEANS,
        "0 or more; 0 if all means are equal",
    ),
    "ratio": GapDefinition(
        "ratio of the smallest to the largest mean",
        "min m_g / max m_g",
        MEANS,
        "0 to 1; 1 if all means are equal; undefined if a mean is negative",
    ),
    "std": GapDefinition(
        "standard deviation of the means",
        "std of the m_g",
        MEANS,
        "0 or more; 0 if all means are equal",
    ),
    "ugf": GapDefinition(
        "absolute difference between the means (UGF, Li et al., WWW 2021)",
        "|m_1 - m_2|",
        MEANS,
        "0 or more; 0 if both means are equal",
    ),
    "mad": GapDefinition(
        "mean absolute difference between the means of two groups (Deldjoo et al., UMUAI 2021)",
        "mean of |m_g - m_h| over all pairs",
        MEANS,
        "0 or more; 0 if all means are equal",
    ),
    "cross_entropy": GapDefinition(
        "generalised cross entropy of the means (β = 2; Deldjoo et al., UMUAI 2021)",
        "( Σ_g f² / p_g - 1 ) / 2 with p_g = m_g / Σ_h m_h and f = 1 / G",
        MEANS,
        "0 or more; 0 if all means are equal; undefined for negative values or a mean of 0",
    ),
    "atkinson": GapDefinition(
        "Atkinson index between the groups (ε = 0.5)",
        f"1 - ( Σ_g w_g √e_g )² / Σ_g w_g e_g with {ATKINSON} and w_g the share of the queries",
        VALUES,
        "0 to 1; 0 if the groups are equal; undefined for negative values or if all are 0",
    ),
    "atkinson_within": GapDefinition(
        "Atkinson index within the groups (ε = 0.5)",
        f"Σ_g s_g ( 1 - e_g / m_g ) with {ATKINSON} and s_g the share of the sum of x",
        VALUES,
        "0 to 1; 0 if all values of each group are equal; undefined for negative values",
    ),
    "atkinson_total": GapDefinition(
        "Atkinson index of all queries, within and between the groups (ε = 0.5)",
        "1 - (mean of √x)² / mean of x",
        VALUES,
        "0 to 1; 0 if all values are equal; undefined for negative values or if all are 0",
    ),
    "worst": GapDefinition("mean of the worst", "the worst m_g", MEANS, ""),
    "worst_quarter": GapDefinition(
        "mean of the worst quarter",
        "mean of the m_g that are not better than a quarter of them",
        MEANS,
        "",
    ),
}
"""The definitions of the gaps, by name; one without a range has that of the metric."""
