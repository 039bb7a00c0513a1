from __future__ import annotations

from pathlib import Path

import recbias
from recbias import api
from recbias.runner.planning.preview import preview
from support.specs import make_small_spec


def test_before_a_run_nothing_is_stored_and_after_it_everything(tmp_path: Path) -> None:
    plan, store = api.plan(make_small_spec(), out=tmp_path)
    before = preview(plan, store)
    assert not any(step.stored for step in before.steps)
    recbias.run(make_small_spec(), out=tmp_path)
    after = preview(plan, store)
    assert all(step.stored for step in after.steps)
    assert all(step.seconds is not None for step in after.steps)
    assert after.memory_mb >= max(step.memory_mb or 0.0 for step in after.steps)
    assert not any(step.stored for step in preview(plan, store, fresh=True).steps)


def test_no_language_model_is_asked(tmp_path: Path) -> None:
    seen = preview(*api.plan(make_small_spec(), out=tmp_path))
    assert (seen.requests, seen.tokens) == (0, 0)
