from __future__ import annotations

import os
from pathlib import Path

import pytest

from recbias.core.errors import BadYaml, MalformedLine, MissingFile
from recbias.language.prompts import read_prompt
from support.files.prompt_files import PAPER, PROMPT, write_prompt

REFERENCE = Path(os.environ.get("RECBIAS_DATA", "")) / ".." / "reference" / "prompts" / "wok.yaml"


def test_own_yaml_has_template_history_and_mitigations(tmp_path: Path) -> None:
    prompt = read_prompt(write_prompt(tmp_path, PROMPT))
    assert (prompt.about, prompt.source) == ("Asks for songs.", "Me.")
    assert prompt.slots == {"history", "n_items", "year_limit"}
    assert (prompt.history.order, prompt.history.max_items) == ("newest_first", 2)
    assert prompt.mitigations == {"niche": "Prefer rare songs."}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{history}", "{histroy}", "mine.yaml:3: line 1 of the template has the unknown slot"),
        ("Heard: {history}", "Heard:", "mine.yaml:3: the template has the slot {history} 0 times"),
        ("- Write {n_items}", "{history} {n_items}", "the slot {history} 2 times"),
        ("{n_items}", "{n_items", "mine.yaml:3: line 2 of the template has a single '{'"),
        ("{n_items}", "{}", "mine.yaml:3: line 2 of the template has the unknown slot {}"),
        ("template:", "tempalte:", "mine.yaml:3: the file has no key 'tempalte'"),
        ("newest_first", "newest", "mine.yaml:7: the order is oldest_first or newest_first"),
        ("max_items: 2", "max_items: 0", "mine.yaml:7: max_items is a whole number from 1"),
        ("* {title}", "* {name}", "mine.yaml:7: the item has the unknown slot {name}"),
        ("* {title}, {year}", "* {year}", "mine.yaml:7: the item must be one line with {title}"),
        ("niche: Prefer rare songs.", "niche: []", "mine.yaml:8: a mitigation must be text"),
        ("about: Asks for songs.", "about: ''", "mine.yaml:1: about must be text"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in PROMPT
    with pytest.raises(MalformedLine) as caught:
        read_prompt(write_prompt(tmp_path, PROMPT.replace(before, after)))
    assert message in str(caught.value)


def test_file_without_template_and_file_that_is_not_yaml_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="there is no template"):
        read_prompt(write_prompt(tmp_path, "about: nothing"))
    with pytest.raises(BadYaml):
        read_prompt(write_prompt(tmp_path, "template: {history"))
    with pytest.raises(MissingFile):
        read_prompt(tmp_path / "none.yaml")


def test_file_of_the_paper_brings_its_own_mitigations(tmp_path: Path) -> None:
    prompt = read_prompt(write_prompt(tmp_path, PAPER))
    assert prompt.slots == {"history", "n_items"}
    assert prompt.mitigations == {"mitigate": "Match the level.", "minimize": "Stay niche."}
    assert prompt.source == "A. Author. A study. 2024"


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the paper's file is not here")
def test_prompt_of_the_paper_is_written_as_published() -> None:
    prompt = read_prompt(REFERENCE)
    text = prompt.render([("Heat", 1995)], n_items=10, year_limit=2008).messages[0].content
    published = REFERENCE.read_text(encoding="utf-8").partition("base_prompt: |-\n")[2]
    published = published.partition("placeholders:")[0]
    lines = [line.removeprefix("  ") for line in published.rstrip().splitlines()]
    expected = "\n".join(lines).replace("{watch_history}", "- Heat (1995)")
    assert text == expected.replace("{nr_items}", "10")
    assert set(prompt.mitigations) == {"mitigate", "minimize"}


def test_braces_are_written_twice(tmp_path: Path) -> None:
    path = write_prompt(tmp_path, 'template: "{history} {{\\"n\\": {n_items}}}"')
    message = read_prompt(path).render([("Heat", None)], n_items=3).messages[0]
    assert message.content == '- Heat {"n": 3}'
