from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.files import compute_digest, to_canonical_json

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ((1, 2), "[1,2]"),
        (Path("a") / "b", '"a/b"'),
        (frozenset({3, 1, 2}), "[1,2,3]"),
        ({"z", "y"}, '["y","z"]'),
        (np.int64(7), "7"),
        (np.float64(0.5), "0.5"),
        (np.bool_(True), "true"),
        ("é", '"é"'),
        (None, "null"),
        (float("nan"), "NaN"),
    ],
)
def test_equal_values_have_the_same_json_text(value: object, text: str) -> None:
    assert to_canonical_json(value) == text


def test_an_object_that_is_not_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="not JSON: object"):
        compute_digest(object())


@given(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=4))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    reverse = dict(reversed(list(value.items())))
    assert compute_digest(reverse) == compute_digest(value)


@given(JSON_VALUES, JSON_VALUES)
def test_only_equal_texts_have_the_same_digest(a: object, b: object) -> None:
    assert (compute_digest(a) == compute_digest(b)) == (
        to_canonical_json(a) == to_canonical_json(b)
    )
