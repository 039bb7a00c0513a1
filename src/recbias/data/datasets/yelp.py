"""The Yelp Open Dataset: businesses, price levels, categories and reviews."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.errors import NothingLeft
from recbias.core.input_files import has_file
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.data.datasets.dataset_folder import Folder, present
from recbias.formats.delimited.layout import BadLines
from recbias.formats.encode_ids import encode, spread
from recbias.formats.json_lines import Fields, refuse_two_lines, texts_of, times_of

BUSINESS = "yelp_academic_dataset_business.json"
REVIEW = "yelp_academic_dataset_review.json"
PRICE = r"^u?'?([1-4])'?$"
"""The price level as published: ``2``, or ``'2'`` with quotes of its own."""


@dataclass(frozen=True, kw_only=True)
class Yelp:
    """Yelp Open Dataset: star ratings and reviews of businesses, with price levels.

    A review is an interaction (its stars are the value) and a review text. Items have ``name``,
    ``city``, ``state``, ``price`` (``$`` to ``$$$$``), ``price_level`` (1 to 4), ``categories``
    (``A|B``), ``stars`` and ``review_count``; a business without a price or categories is kept,
    with those cells missing. Reviews of businesses that are not in the file of businesses are
    left out and counted. A review without stars is a review text, but no interaction.

    Args:
        city: Only businesses of this city; None for all.
        categories: Only businesses with at least one of these categories (``Restaurants``); None
            for all.
        reviews: Whether the review texts are kept; without them memory is far smaller.
        folder: The folder below the data folder.
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: The dataset is not there; ``recbias data fetch yelp`` says how to get it.
        NothingLeft: No business is of that city or category.
        MalformedLine: A line does not have the published layout.

    Source:
        Yelp Open Dataset, https://www.yelp.com/dataset (academic use, terms to be agreed to).
    """

    city: str | None = None
    categories: tuple[str, ...] | None = None
    reviews: bool = True
    folder: str = "yelp"
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"train", "items"} | ({"reviews"} if self.reviews else set()))

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads: as published, or with ``.gz``."""
        places = [data / self.folder / name for name in (BUSINESS, REVIEW)]
        packed = [each.with_name(f"{each.name}.gz") for each in places]
        found = [
            path if has_file(path) or not has_file(gz) else gz
            for path, gz in zip(places, packed, strict=True)
        ]
        return present(found, fetch="yelp")

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        business, review = self.files(data)
        folder = Folder(business.parent, self.bad_lines)
        rows = folder.read_json(business.name, _business_fields())
        all_ids, (codes,) = encode(rows.table["business_id"])
        refuse_two_lines(codes, all_ids, business)
        items = self._chosen(_item_columns(rows.table), business)
        ids = rows.table["business_id"].take(items.index.to_numpy())
        read = _Reviews(ids, texts=self.reviews)
        fields = _review_fields(texts=self.reviews)
        made = folder.read_json(review.name, fields, keep=read.keep)
        counts = folder.counts
        if self.city is None and self.categories is None:
            counts["reviews_of_unknown_businesses"] = read.left_out
            _warn_of(read.left_out, review)
        return _dataset(made.table, ids, items, counts)

    def _chosen(self, items: pd.DataFrame, path: Path) -> pd.DataFrame:
        """Return the businesses of the city and categories asked for."""
        if self.city is not None:
            match = items["city"].str.casefold() == self.city.casefold()
            items = _some(items[match.to_numpy()], "city", self.city, items["city"], path)
        if self.categories is not None:
            cells = items["categories"].str.split(SEPARATOR, regex=False).explode()
            wanted = {each.casefold() for each in self.categories}
            rows = cells.index[cells.str.casefold().isin(wanted)].unique()
            named = " or ".join(self.categories)
            items = _some(items.loc[rows], "category", named, cells, path)
        return items


@dataclass
class _Reviews:
    """Keeps the reviews of known businesses, block by block."""

    businesses: Any
    texts: bool
    left_out: int = 0

    def keep(self, table: Any) -> Any:
        import pyarrow.compute as pc

        kept = table.filter(pc.is_in(table["business_id"], value_set=self.businesses))
        self.left_out += table.num_rows - kept.num_rows
        return kept


def _some(
    chosen: pd.DataFrame, what: str, asked: str, known: pd.Series[Any], path: Path
) -> pd.DataFrame:
    if chosen.empty:
        remedy = suggest(asked, known.dropna().unique().tolist())
        raise NothingLeft(f"no business has the {what} {asked!r}", where=str(path), remedy=remedy)
    return chosen


def _business_fields() -> Fields:
    import pyarrow as pa

    texts = dict.fromkeys(("business_id", "name", "city", "state", "categories"), pa.string())
    numbers = dict.fromkeys(("stars", "review_count"), pa.float64())
    attributes = pa.struct([("RestaurantsPriceRange2", pa.string())])
    types = {**texts, **numbers, "attributes": attributes}
    return Fields(types=types, needed=("business_id",))


def _review_fields(*, texts: bool) -> Fields:
    import pyarrow as pa

    names = ("user_id", "business_id", "date", *(("text",) if texts else ()))
    return Fields(
        types={**dict.fromkeys(names, pa.string()), "stars": pa.float64()},
        needed=("user_id", "business_id"),
        times={"date": _seconds},
    )


def _seconds(dates: Any) -> Any:
    """Return ``2019-05-25 15:54:00``, taken as UTC, in seconds since 1970; null for other text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    times = pc.strptime(dates, format="%Y-%m-%d %H:%M:%S", unit="s", error_is_null=True)
    return times.cast(pa.int64())


def _item_columns(table: Any) -> pd.DataFrame:
    import pyarrow.compute as pc

    text = {name: texts_of(table[name]) for name in ("name", "city", "state", "categories")}
    published = texts_of(pc.struct_field(table["attributes"], "RestaurantsPriceRange2"))
    level = pd.Series(published, dtype=object).str.extract(PRICE, expand=False).astype(float)
    signs = np.array([None, *("$" * each for each in range(1, 5))], dtype=object)
    categories = pd.Series(text["categories"], dtype=object).str.replace(r",\s*", "|", regex=True)
    frame = {
        "name": text["name"],
        "city": text["city"],
        "state": text["state"],
        "price": signs[level.fillna(0).astype(int).to_numpy()],
        "price_level": level.to_numpy(),
        "categories": categories.where(categories.notna(), None),
        "stars": table["stars"].to_numpy(),
        "review_count": table["review_count"].to_numpy(),
    }
    return pd.DataFrame(frame)


def _dataset(table: Any, ids: Any, items: pd.DataFrame, counts: dict[str, int]) -> Dataset:
    user_ids, (users,) = encode(table["user_id"])
    item_ids, (reviewed, places) = encode(table["business_id"], ids)
    rated = np.flatnonzero(table["stars"].is_valid().to_numpy())
    stars = table["stars"].to_numpy()[rated].astype(np.float32)
    times = times_of(table["date"].take(rated), "date")
    counts["reviews_without_stars"] = table.num_rows - rated.size
    columns = {
        str(name): spread(places, items[name].to_numpy(), len(item_ids)) for name in items.columns
    }
    reviews = None
    if "text" in table.column_names:
        texts = np.asarray(table["text"].fill_null("").to_numpy(), dtype=object)
        reviews = Reviews(users, reviewed, texts)
    return Dataset(
        Interactions(users[rated], reviewed[rated], stars, times, user_ids, item_ids),
        items=Attributes(item_ids, pd.DataFrame(columns), "item"),
        reviews=reviews,
        counts=counts,
    )


def _warn_of(left_out: int, path: Path) -> None:
    if left_out:
        warn(f"{path.name}: {left_out:,} review(s) of businesses that are not listed left out")
