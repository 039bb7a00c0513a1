from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.files import derive_seed, make_generator


def test_equal_seeds_and_names_give_equal_generators() -> None:
    numbers = make_generator(42, "split", 0).random(5)
    assert numbers.tolist() == make_generator(42, "split", 0).random(5).tolist()


def test_derived_seeds_do_not_change() -> None:
    # SHA-256 of "42\0split\0" + "0", first 8 bytes, halved: results of old runs depend on it
    digest = hashlib.sha256(b"42\0split\x000").digest()[:8]
    assert derive_seed(42, "split", 0) == int.from_bytes(digest, "big") >> 1


@pytest.mark.parametrize(
    "names", [(43, "split", 0), (42, "fit", 0), (42, "split", 1), (42, "split"), (42, "split0")]
)
def test_another_seed_or_name_gives_another_generator(names: tuple[int, object]) -> None:
    assert derive_seed(*names) != derive_seed(42, "split", 0)
    assert make_generator(*names).random() != make_generator(42, "split", 0).random()


def test_generators_do_not_depend_on_each_other() -> None:
    number = make_generator(1, "a").random()
    make_generator(1, "b").random(100)
    assert make_generator(1, "a").random() == number


@given(st.integers(-(2**70), 2**70), st.lists(st.text(max_size=5), max_size=3))
def test_every_seed_has_63_bits(seed: int, names: list[str]) -> None:
    assert 0 <= derive_seed(seed, *names) < 2**63
    np.random.default_rng(derive_seed(seed, *names))
