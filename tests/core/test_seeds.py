from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.seeds import derive_seed, make_generator


def test_a_seed_and_names_always_give_the_same_generator() -> None:
    one, two = make_generator(42, "split", 0), make_generator(42, "split", 0)
    assert one.random(5).tolist() == two.random(5).tolist()


def test_the_seeds_are_these() -> None:
    # SHA-256 of "42\0split\0" + "0", first 8 bytes, halved: results of old runs hang on it
    import hashlib

    first = hashlib.sha256(b"42\0split\x000").digest()[:8]
    assert derive_seed(42, "split", 0) == int.from_bytes(first, "big") >> 1


@pytest.mark.parametrize(
    "other", [(43, "split", 0), (42, "fit", 0), (42, "split", 1), (42, "split"), (42, "split0")]
)
def test_another_seed_or_name_gives_another_stream(other: tuple[int, object]) -> None:
    assert derive_seed(*other) != derive_seed(42, "split", 0)
    assert make_generator(*other).random() != make_generator(42, "split", 0).random()


def test_order_of_drawing_does_not_matter() -> None:
    first = make_generator(1, "a").random()
    make_generator(1, "b").random(100)
    assert make_generator(1, "a").random() == first


@given(st.integers(-(2**70), 2**70), st.lists(st.text(max_size=5), max_size=3))
def test_every_seed_fits_63_bits(seed: int, names: list[str]) -> None:
    assert 0 <= derive_seed(seed, *names) < 2**63
    np.random.default_rng(derive_seed(seed, *names))
