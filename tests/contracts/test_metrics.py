"""Every registered metric keeps what its kind promises."""

from __future__ import annotations

from dataclasses import fields

import pytest

from recbias.plugins import REGISTRIES
from recbias.testing import check_metric

METRICS = REGISTRIES["metrics"]


@pytest.mark.parametrize("name", METRICS.names())
def test_it_keeps_the_contract(name: str) -> None:
    check_metric(METRICS.load(name)())


@pytest.mark.parametrize("name", METRICS.names())
def test_it_keeps_the_contract_at_another_cutoff(name: str) -> None:
    cls = METRICS.load(name)
    if any(field.name == "k" for field in fields(cls)):
        check_metric(cls(k=3))


@pytest.mark.parametrize("name", METRICS.names())
def test_every_setting_is_documented(name: str) -> None:
    cls = METRICS.load(name)
    for field in fields(cls):
        assert f"{field.name}:" in (cls.__doc__ or ""), f"{name}: {field.name}"
