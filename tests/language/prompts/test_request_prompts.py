from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine
from recbias.language.prompts import find_request_prompt, load_all_prompts
from support.commands import invoke_recbias


def write(folder: Path, template: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(f"template: |-\n  {template}\n", encoding="utf-8")
    return str(path)


def test_all_prompts_are_listed_and_shown(tmp_path: Path) -> None:
    assert {"watch_history", "titles"} <= set(load_all_prompts())
    assert "titles" in invoke_recbias("list", "prompts", folder=tmp_path).out
    assert "{request}" in invoke_recbias("show", "titles", folder=tmp_path).out


@pytest.mark.parametrize(
    "template", ["Give {n_items}.", "{request}", "{request}{request}{n_items}"]
)
def test_slots_are_required(tmp_path: Path, template: str) -> None:
    with pytest.raises(MalformedLine, match="the template has the slot"):
        find_request_prompt(write(tmp_path, template))
