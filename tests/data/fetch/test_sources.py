from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import UnknownName
from recbias.data.fetch import Source, fetch, find_source, read_sources
from recbias.registry import REGISTRIES


@pytest.mark.parametrize("source", read_sources().values(), ids=lambda source: source.name)
def test_every_source_has_terms_and_an_address(source: Source) -> None:
    assert source.licence
    assert source.citation in source.terms()
    assert source.holds
    assert bool(source.files) != bool(source.manual)
    if source.files:
        assert source.base.startswith("https://")
        assert source.base.endswith("/")
        assert source.most_mb, "a source declares the largest size of its files"


def test_every_published_dataset_has_a_source() -> None:
    unpublished = {"demo", "tables", "sentence_tables"}
    assert set(REGISTRIES["datasets"].table) - unpublished <= set(read_sources())


def test_an_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        fetch("ml-1n", tmp_path / "data")
    assert "ml-1m" in caught.value.remedy
    assert not list(tmp_path.iterdir())
    assert find_source("ML_1M").name == "ml-1m"
