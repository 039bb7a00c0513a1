"""Broken specs: `recbias plan` names the place of each fault and the remedy, and ends with 2."""

from __future__ import annotations

import random
import re
import shutil
import time
from pathlib import Path

import pytest

from support.commands import invoke_recbias
from support.faults.samples import CONTROLS, choose_seeds
from support.faults.spec_faults import break_spec

CONFIGS = Path(__file__).parents[2] / "configs"
NAMES = (
    "quickstart",
    "demo-bias",
    "demo-feedback",
    "demo-vectors",
    "audit",
    "prompts",
    "sweep",
    "identity-audit",
)
SECONDS = 5.0
MAX_LENGTH = 20_000
"""Characters of all errors of a spec."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(CONFIGS, tmp_path_factory.mktemp("specs") / "configs"))


@pytest.mark.parametrize("seed", choose_seeds(10, 1000))
def test_a_broken_spec_is_refused_with_place_and_remedy(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    spec = CONFIGS / f"{rng.choice(NAMES)}.yaml"
    faults, content = break_spec(spec.read_text(encoding="utf-8"), rng)
    (folder / "broken.yaml").write_bytes(content)
    begin = time.process_time()
    result = invoke_recbias("plan", "broken.yaml", folder=folder)
    assert time.process_time() - begin < SECONDS, faults
    output = result.out + result.err
    assert result.code in (0, 2), faults
    assert not CONTROLS.search(output), faults
    assert "Traceback" not in output, faults
    assert "\nerror: forged" not in output, faults
    assert len(result.err) < MAX_LENGTH, faults
    if result.code == 2:
        assert re.search("^error: broken.yaml", result.err, re.MULTILINE), faults
        assert "\nhelp: " in result.err, faults


def test_faults_are_made_again_from_their_seed() -> None:
    text = (CONFIGS / "quickstart.yaml").read_text(encoding="utf-8")
    assert break_spec(text, random.Random(5)) == break_spec(text, random.Random(5))
    broken = {break_spec(text, random.Random(seed))[1] for seed in range(100)}
    assert len(broken) > 90
