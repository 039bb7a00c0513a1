from __future__ import annotations

from pathlib import Path

import recbias
from recbias import api
from recbias.runner.estimate import preview
from support.specs import make_small_spec


def test_stages_are_stored_after_a_run_and_not_before(tmp_path: Path) -> None:
    plan, store = api.plan(make_small_spec(), out=tmp_path)
    before = preview(plan, store)
    assert not any(step.stored for step in before.steps)
    recbias.run(make_small_spec(), out=tmp_path)
    after = preview(plan, store)
    assert all(step.stored for step in after.steps)
    assert all(step.seconds is not None for step in after.steps)
    assert before.memory_mb is None
    assert before.n_without_memory == len(before.steps)
    assert after.memory_mb == max(step.memory_mb or 0.0 for step in after.steps)
    assert not any(step.stored for step in preview(plan, store, fresh=True).steps)
