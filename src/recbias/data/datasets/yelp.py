"""The Yelp Open Dataset: businesses, price levels, categories and reviews."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.errors import NothingLeft
from recbias.core.input_files import has_file
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.data.datasets.dataset_folder import Folder, require_files
from recbias.formats.delimited import BadLines
from recbias.formats.encode_ids import align_columns, encode
from recbias.formats.json_files import Fields, to_texts, to_times, validate_unique_lines

BUSINESS = "yelp_academic_dataset_business.json"
REVIEW = "yelp_academic_dataset_review.json"
PRICE = r"^u?'?([1-4])'?$"
"""The price level as published: ``2``, or ``'2'`` in quotes."""

BUSINESS_FIELDS = Fields(
    types={
        **dict.fromkeys(("business_id", "name", "city", "state", "categories"), pa.string()),
        **dict.fromkeys(("stars", "review_count"), pa.float64()),
        "attributes": pa.struct([("RestaurantsPriceRange2", pa.string())]),
    },
    needed=("business_id",),
)

_SIGNS = np.array([None, "$", "$$", "$$$", "$$$$"], dtype=object)


@dataclass(frozen=True, kw_only=True)
class Yelp:
    """Yelp Open Dataset: star ratings and reviews of businesses, with price levels.

    A review is an interaction (its stars are the value) and a review text. Items have ``name``,
    ``city``, ``state``, ``price`` (``$`` to ``$$$$``), ``price_level`` (1 to 4), ``categories``
    (``A|B``), ``stars`` and ``review_count``; a missing price or category is a missing cell.
    Reviews of businesses that the file of businesses lacks are excluded and counted. A review
    without stars is a review text but not an interaction.

    Args:
        city: Only businesses of this city; None for all.
        categories: Only businesses with at least one of these categories (``Restaurants``); None
            for all.
        reviews: Whether the review texts are read; without them much less memory is needed.
        folder: The folder below the data folder.
        bad_lines: ``error`` stops at a malformed line, ``skip`` skips and counts it.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch yelp`` explains how to get it.
        NothingLeft: No business has the city or a category.
        MalformedLine: A line does not have the published layout.

    Source:
        Yelp Open Dataset, https://www.yelp.com/dataset (academic use, requires consent to terms).
    """

    city: str | None = None
    categories: tuple[str, ...] | None = None
    reviews: bool = True
    folder: str = "yelp"
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"train", "items", *(["reviews"] if self.reviews else [])})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads: as published, or with ``.gz``."""
        paths = [data / self.folder / name for name in (BUSINESS, REVIEW)]
        for position, path in enumerate(paths):
            packed = path.with_name(f"{path.name}.gz")
            if has_file(packed) and not has_file(path):
                paths[position] = packed
        return require_files(paths, fetch="yelp")

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        business, review = self.files(data)
        folder = Folder(business.parent, self.bad_lines)
        rows = folder.read(business.name, BUSINESS_FIELDS)
        all_ids, (codes,) = encode(rows.table["business_id"])
        validate_unique_lines(codes, all_ids, business)
        items = self._select_businesses(_build_item_columns(rows.table), business)
        ids = rows.table["business_id"].take(items.index.to_numpy())
        n_excluded = 0

        def filter_reviews(table: Any) -> Any:
            nonlocal n_excluded
            retained = table.filter(pc.is_in(table["business_id"], value_set=ids))
            n_excluded += table.num_rows - retained.num_rows
            return retained

        fields = _list_review_fields(texts=self.reviews)
        reviews = folder.read(review.name, fields, keep=filter_reviews)
        counts = folder.counts
        if self.city is None and self.categories is None:
            counts["reviews_of_unknown_businesses"] = n_excluded
            if n_excluded:
                message = f"excluded {n_excluded:,} review(s) of businesses that are not listed"
                warn(f"{review.name}: {message}")
        return _build_dataset(reviews.table, ids, items, counts)

    def _select_businesses(self, items: pd.DataFrame, path: Path) -> pd.DataFrame:
        if self.city is not None:
            rows = items["city"].str.casefold() == self.city.casefold()
            if not rows.any():
                raise _refuse("city", self.city, items["city"], path)
            items = items[rows.to_numpy()]
        if self.categories is not None:
            cells = items["categories"].str.split(SEPARATOR, regex=False).explode()
            names = {name.casefold() for name in self.categories}
            index = cells.index[cells.str.casefold().isin(names)].unique()
            if index.empty:
                raise _refuse("category", " or ".join(self.categories), cells, path)
            items = items.loc[index]
        return items


def _refuse(column: str, value: str, cells: pd.Series[Any], path: Path) -> NothingLeft:
    remedy = suggest(value, cells.dropna().unique().tolist())
    return NothingLeft(f"no business has the {column} {value!r}", where=str(path), remedy=remedy)


def _list_review_fields(*, texts: bool) -> Fields:
    names = ("user_id", "business_id", "date", *(("text",) if texts else ()))
    return Fields(
        types={**dict.fromkeys(names, pa.string()), "stars": pa.float64()},
        needed=("user_id", "business_id"),
        times={"date": _parse_dates},
    )


def _parse_dates(dates: Any) -> Any:
    """Parse ``2019-05-25 15:54:00`` (UTC) to seconds since 1970; other text becomes null."""
    times = pc.strptime(dates, format="%Y-%m-%d %H:%M:%S", unit="s", error_is_null=True)
    return times.cast(pa.int64())


def _build_item_columns(table: Any) -> pd.DataFrame:
    texts = {name: to_texts(table[name]) for name in ("name", "city", "state", "categories")}
    prices = to_texts(pc.struct_field(table["attributes"], "RestaurantsPriceRange2"))
    level = pd.Series(prices, dtype=object).str.extract(PRICE, expand=False).astype(float)
    categories = pd.Series(texts["categories"], dtype=object)
    categories = categories.str.replace(r",\s*", SEPARATOR, regex=True)
    columns = {
        **{name: texts[name] for name in ("name", "city", "state")},
        "price": _SIGNS[level.fillna(0).astype(int).to_numpy()],
        "price_level": level.to_numpy(),
        "categories": categories.where(categories.notna(), None),
        **{name: table[name].to_numpy() for name in ("stars", "review_count")},
    }
    return pd.DataFrame(columns)


def _build_dataset(reviews: Any, ids: Any, items: pd.DataFrame, counts: dict[str, int]) -> Dataset:
    user_ids, (users,) = encode(reviews["user_id"])
    item_ids, (reviewed, item_codes) = encode(reviews["business_id"], ids)
    rated = np.flatnonzero(reviews["stars"].is_valid().to_numpy())
    stars = reviews["stars"].to_numpy()[rated].astype(np.float32)
    times = to_times(reviews["date"].take(rated), "date")
    counts["reviews_without_stars"] = reviews.num_rows - rated.size
    columns = {str(name): items[name].to_numpy() for name in items}
    attributes = align_columns(item_codes, columns, item_ids, "item")
    review_texts = None
    if "text" in reviews.column_names:
        texts = np.asarray(reviews["text"].fill_null("").to_numpy(), dtype=object)
        review_texts = Reviews(users, reviewed, texts)
    rows = Interactions(users[rated], reviewed[rated], stars, times, user_ids, item_ids)
    return Dataset(rows, items=attributes, reviews=review_texts, counts=counts)
