"""Broken folders of language models: an error that names the file, or a model that answers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import UserError
from recbias.core.text import make_printable
from recbias.language.local_models import load_encoder, load_model, load_tokenizer
from recbias.language.model_files import find_model
from support.faults.alarm import end_after
from support.faults.files.byte_faults import OF_PATHS
from support.faults.files.cases import Case, list_changes
from support.faults.files.forms import Form
from support.faults.samples import CONTROLS, choose_seeds
from support.models.small_causal import write_small_causal
from support.models.small_encoder import write_small_encoder

SECONDS = 5.0
MAX_LENGTH = 2_000
WHOLE = 600
"""The number of cases."""


def read_encoder(folder: Path) -> None:
    source = find_model(str(folder))
    load_tokenizer(source)
    load_encoder(source)


def read_causal_model(folder: Path) -> None:
    load_model(str(folder), device="cpu").encode("a text")


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> list[Form]:
    """Return a form for each file of two folders of models."""
    folder = tmp_path_factory.mktemp("models")
    write_small_encoder(folder / "encoder")
    write_small_causal(folder / "causal", "gpt2")
    readers: Mapping[str, Callable[[Path], None]] = {
        "encoder": read_encoder,
        "causal": read_causal_model,
    }
    found = []
    for name, read in readers.items():
        files = {path.name: path.read_bytes() for path in sorted((folder / name).iterdir())}
        for target, content in files.items():
            kind = "json" if target.endswith(".json") else "binary"
            found.append(Form(f"{name} {target}", {target: content, **files}, read, kind))
    return found


@pytest.mark.parametrize("seed", choose_seeds(6, WHOLE))
def test_a_broken_model_folder_is_refused(forms: list[Form], tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    form = rng.choice(forms)
    case = Case(form, rng.choice([*OF_PATHS, *list_changes(form)]), seed)
    case.write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    begin = time.process_time()
    error: UserError | None = None
    with end_after(60), collect_warnings():
        try:
            form.read(tmp_path)
        except UserError as caught:
            error = caught
    assert time.process_time() - begin < SECONDS, case
    assert sorted(tmp_path.rglob("*")) == before, case
    if error is not None:
        lines = [make_printable(line) for line in error.lines()]
        assert not CONTROLS.search("".join(lines)), case
        assert str(tmp_path) in lines[0], (case, lines)
        assert lines[1].startswith("help: "), (case, lines)
        assert sum(map(len, lines)) < MAX_LENGTH, case
