"""Whether the items that a model names for a review are of the kind of the item reviewed.

A ranked item is relevant where it has a category in common with the item reviewed, which itself
is relevant too; an item without categories is not. The whole ranking counts. A review is
undefined where the item reviewed has no category, or no ranked item shares one with it: NaN,
counted, and left out of the mean. The arithmetic is that of lists, in ``hit_scores``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy import hit_scores
from recbias.metrics.accuracy.named_items import Cutoff, check_cutoff
from recbias.metrics.accuracy.shared_categories import item_categories, scored

_NEEDS = frozenset({"predictions", "items"})
_VALUES = "0 to 1; undefined for a review of an item without categories"
_SOURCE = "Shen, Li, Bouadjenek, Mai and Sanner 2022, table 3, category coverage"


@dataclass(frozen=True, kw_only=True)
class CategoryPrecision:
    """The share of the first k items named that have a category of the item reviewed.

        P@k = relevant items among the first k / k

    An item is relevant where it shares a category with the item reviewed; the item reviewed is.
    Undefined where the item reviewed has no category.

    Args:
        attribute: The item column of the categories; a cell ``a|b`` holds both.
        without: Categories that count for nothing, such as those that nearly every item has.
        k: How many of the items named count; left open in a spec it is the spec's ``k``.

    Raises:
        UnknownColumn: The items have no such column, or no such category.
        OutOfRange: There are fewer than ``k`` items to name.

    Range:
        0 to 1; undefined for a review of an item without categories.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 3, P@5, P@10 and P@20.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    attribute: str = "categories"
    without: tuple[str, ...] = ()
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the categories and the cutoff."""
        check_cutoff(evidence, self.k)
        item_categories(evidence, self.attribute, self.without)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review, and their mean."""
        categories = item_categories(evidence, self.attribute, self.without)
        return scored(evidence, hit_scores.precision, categories, self.k)


@dataclass(frozen=True, kw_only=True)
class CategoryRPrecision:
    """The share of relevant items among the first R named, R being all that are relevant.

        R-Precision = relevant items among the first R / R

    An item is relevant where it shares a category with the item reviewed; the item reviewed is. R
    is the number of relevant items in the whole ranking. Undefined where the item reviewed has no
    category.

    Args:
        attribute: The item column of the categories; a cell ``a|b`` holds both.
        without: Categories that count for nothing, such as those that nearly every item has.

    Raises:
        UnknownColumn: The items have no such column, or no such category.

    Range:
        0 to 1; undefined for a review of an item without categories.

    Source:
        Buckley and Voorhees, "Retrieval system evaluation", 2005; Shen et al. 2022, table 3,
        R-Prec.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    attribute: str = "categories"
    without: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the categories."""
        item_categories(evidence, self.attribute, self.without)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review, and their mean."""
        categories = item_categories(evidence, self.attribute, self.without)
        return scored(evidence, hit_scores.r_precision, categories)


@dataclass(frozen=True, kw_only=True)
class CategoryMAP:
    """Mean average precision of the whole ranking, items of the reviewed item's kind relevant.

        AP = (1/R) Σ_r P@r · rel(r),    P@r = relevant items among the first r / r

    ``rel(r)`` is 1 where the item at rank r shares a category with the item reviewed; the item
    reviewed does. R is the number of relevant items in the whole ranking. Undefined where the
    item reviewed has no category.

    Args:
        attribute: The item column of the categories; a cell ``a|b`` holds both.
        without: Categories that count for nothing, such as those that nearly every item has.

    Raises:
        UnknownColumn: The items have no such column, or no such category.

    Range:
        0 to 1; undefined for a review of an item without categories.

    Source:
        Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000; Shen et al.
        2022, table 3, MAP.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    attribute: str = "categories"
    without: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the categories."""
        item_categories(evidence, self.attribute, self.without)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review, and their mean."""
        categories = item_categories(evidence, self.attribute, self.without)
        return scored(evidence, hit_scores.average_precision, categories)


@dataclass(frozen=True, kw_only=True)
class CategoryMRR:
    """The mean of 1 over the rank of the first item of the reviewed item's kind.

        MRR = (1/n) Σ_reviews 1 / rank of the first relevant item

    An item is relevant where it shares a category with the item reviewed; the item reviewed is.
    Undefined where the item reviewed has no category.

    Args:
        attribute: The item column of the categories; a cell ``a|b`` holds both.
        without: Categories that count for nothing, such as those that nearly every item has.

    Raises:
        UnknownColumn: The items have no such column, or no such category.

    Range:
        0 to 1; undefined for a review of an item without categories.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999; Shen et al. 2022, table 3,
        category coverage.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    attribute: str = "categories"
    without: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the categories."""
        item_categories(evidence, self.attribute, self.without)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review, and their mean."""
        categories = item_categories(evidence, self.attribute, self.without)
        return scored(evidence, hit_scores.reciprocal_rank, categories)


@dataclass(frozen=True, kw_only=True)
class CategoryNDCG:
    """How much of the gain of a perfect ranking each has, items of the reviewed item's kind first.

        nDCG = Σ_r rel(r) / log2(r + 1)  /  Σ_{r ≤ R} 1 / log2(r + 1)

    ``rel(r)`` is 1 where the item at rank r shares a category with the item reviewed; the item
    reviewed does. R is the number of relevant items. The sum is over the whole ranking. Undefined
    where the item reviewed has no category.

    Args:
        attribute: The item column of the categories; a cell ``a|b`` holds both.
        without: Categories that count for nothing, such as those that nearly every item has.

    Raises:
        UnknownColumn: The items have no such column, or no such category.

    Range:
        0 to 1; undefined for a review of an item without categories.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        2002, with the discount log2(r + 1); Shen et al. 2022, table 3, nDCG.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    attribute: str = "categories"
    without: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the categories."""
        item_categories(evidence, self.attribute, self.without)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review, and their mean."""
        categories = item_categories(evidence, self.attribute, self.without)
        return scored(evidence, hit_scores.ndcg, categories)
