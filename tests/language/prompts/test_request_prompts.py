from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine, UnknownName
from recbias.language.prompts import find_request_prompt
from recbias.language.rubrics import load_all_prompts
from support.commands import invoke_recbias


def write(folder: Path, template: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(f"template: |-\n  {template}\n", encoding="utf-8")
    return str(path)


def test_packaged_prompt_holds_the_request_and_the_number() -> None:
    (message,) = find_request_prompt("titles").render("I like {braces}.", 7).messages
    assert message.content.startswith("I like {braces}.\n")
    assert message.content.count("7") == 2


def test_all_prompts_are_listed_and_shown(tmp_path: Path) -> None:
    assert {"watch_history", "titles"} <= set(load_all_prompts())
    assert "titles" in invoke_recbias("list", "prompts", folder=tmp_path).out
    assert "{request}" in invoke_recbias("show", "titles", folder=tmp_path).out


def test_own_file_is_a_prompt(tmp_path: Path) -> None:
    prompt = find_request_prompt(write(tmp_path, "{request} Give {n_items} songs."))
    assert prompt.render("Hi.", 3).messages[0].content == "Hi. Give 3 songs."


@pytest.mark.parametrize(
    "template", ["Give {n_items}.", "{request}", "{request}{request}{n_items}"]
)
def test_slots_are_required(tmp_path: Path, template: str) -> None:
    with pytest.raises(MalformedLine, match="the template has the slot"):
        find_request_prompt(write(tmp_path, template))


def test_unknown_prompt_is_refused() -> None:
    with pytest.raises(UnknownName, match="neither a packaged prompt") as caught:
        find_request_prompt("title")
    assert "titles" in caught.value.remedy
