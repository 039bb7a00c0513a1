from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.digests import canonical, compute_digest, digest_file

json_values = st.recursive(
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
def test_canonical_text(value: object, text: str) -> None:
    assert canonical(value) == text


def test_digest_is_the_sha256_of_the_text() -> None:
    assert compute_digest({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()


def test_what_is_not_json_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="not JSON: object"):
        compute_digest(object())


def test_a_lone_surrogate_has_a_digest() -> None:
    assert len(compute_digest("\ud800")) == 64


def test_file_digest_is_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    assert digest_file(path) == hashlib.sha256(b"abc").hexdigest()


@given(st.dictionaries(st.text(max_size=3), json_values, max_size=4))
def test_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    turned = dict(reversed(list(value.items())))
    assert compute_digest(turned) == compute_digest(value)


@given(json_values, json_values)
def test_equal_texts_only_share_a_digest(one: object, two: object) -> None:
    assert (compute_digest(one) == compute_digest(two)) == (canonical(one) == canonical(two))
