from __future__ import annotations

import pytest

from recbias.data.fetch import Source, read_sources


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
