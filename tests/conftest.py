"""Fixtures of all tests: a random generator, the folder of real datasets, and Chromium."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from recbias.core.context import collect_warnings
from support.browsing import CHROMIUM, FLAGS

ROOT = Path(__file__).parents[1]

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell starts what runs in the background so
    signal.signal(signal.SIGINT, signal.default_int_handler)  # and processes would inherit it

settings.register_profile("house", deadline=None, database=None, derandomize=True, max_examples=30)
settings.load_profile("house")

gc.set_threshold(50_000)  # a sixth of the time went into visiting what tests and packages define


def pytest_collection_finish() -> None:
    """Leave what has been imported and collected out of the garbage collections of the tests."""
    gc.freeze()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture
def stage_warnings() -> Iterator[list[str]]:
    """Collect the warnings of the test, as a stage does."""
    with collect_warnings() as messages:
        yield messages


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real datasets, or skip the test."""
    folder = Path(os.environ.get("RECBIAS_DATA", "") or ROOT.parent / "shared" / "data")
    if not (folder / "ml-1m" / "ratings.dat").is_file():
        pytest.skip("no real data: set RECBIAS_DATA to a folder that holds ml-1m/")
    return folder.resolve()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a running Chromium, or skip the test.

    A process can drive one at a time, so that each module closes its own.
    """
    driver = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()
