from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import (
    BadYaml,
    Contradiction,
    MalformedLine,
    MissingFile,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UnknownName,
    WrongType,
)
from recbias.core.grouping import group_by
from recbias.language.prompts import (
    HistoryItem,
    RecommendationPrompt,
    RequestPrompt,
    find_mitigation,
    load_all_prompts,
    load_mitigations,
)
from recbias.language.templates import FaiRLLMPrompts, read_prompts
from support.commands import invoke_recbias
from support.files.prompt_files import PROMPT, STATED, write_prompt

HISTORY: list[HistoryItem] = [("Alpha", 1990), ("Beta", None), ("Gamma", 2000)]


def read_text(folder: Path, text: str) -> RecommendationPrompt:
    return RecommendationPrompt.find(str(write_prompt(folder, text)))


def render(prompt: RecommendationPrompt, **settings: int | str) -> str:
    values = {"n_items": 5, "year_limit": 2008, **settings}
    return prompt.render(HISTORY, **values).messages[0].content  # type: ignore[arg-type]


def test_history_is_cut_to_the_newest_items_and_the_cut_is_counted(tmp_path: Path) -> None:
    rendered = read_text(tmp_path, PROMPT).render(HISTORY, n_items=5, year_limit=1999)
    # at most 2 of 3 items, the newest first; Beta has no year
    assert rendered.messages[0].role == "user"
    assert rendered.messages[0].content == (
        "Heard: * Gamma, 2000\n* Beta\n- Write 5\n- None after 1999, please"
    )
    assert rendered.n_cut == 1


def test_empty_history_and_no_items_are_rejected() -> None:
    prompt = RecommendationPrompt.find("watch_history")
    with pytest.raises(NothingLeft, match="the history is empty"):
        prompt.render([], n_items=10)
    with pytest.raises(OutOfRange, match="0 items"):
        prompt.render(HISTORY, n_items=0)


def test_line_of_the_year_limit_is_left_out_without_a_limit(tmp_path: Path) -> None:
    rendered = read_text(tmp_path, PROMPT).render(HISTORY, n_items=5)
    assert rendered.messages[0].content.endswith("- Write 5")


def test_mitigation_is_one_more_bullet_after_the_last(tmp_path: Path) -> None:
    plain = render(read_text(tmp_path, STATED), n_items=10)
    mitigated = render(read_text(tmp_path, STATED), n_items=10, mitigation="Stay {niche}.")
    bullet = "\n- Nothing newer than 2008.\n"
    assert mitigated == plain.replace(bullet, f"{bullet}- Stay {{niche}}.\n")


def test_mitigation_is_the_last_line_of_a_template_without_bullets(tmp_path: Path) -> None:
    prompt = read_text(tmp_path, "template: Give {n_items} like {history}")
    text = prompt.render([("Heat", None)], n_items=3, mitigation="Stay niche.")
    assert text.messages[0].content == "Give 3 like - Heat\n- Stay niche."


def test_mitigation_fills_its_slot_and_its_line_is_left_out_without_one(tmp_path: Path) -> None:
    prompt = read_text(tmp_path, "template: |-\n  {history}\n  First: {mitigation}\n  {n_items}\n")
    rendered = prompt.render([("Heat", None)], n_items=3, mitigation="Stay niche.")
    assert rendered.messages[0].content == "- Heat\nFirst: Stay niche.\n3"
    assert prompt.render([("Heat", None)], n_items=3).messages[0].content == "- Heat\n3"


def test_number_that_the_template_does_not_state_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(Contradiction, match=r"no slot \{year_limit\} and does not contain 2000"):
        render(read_text(tmp_path, STATED), year_limit=2000)
    with pytest.raises(Contradiction, match=r"no slot \{n_items\} and does not contain 1$"):
        render(read_text(tmp_path, 'template: "{history} 10"'), n_items=1, year_limit=0)
    assert render(read_text(tmp_path, STATED), year_limit=2008)


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("{history} {n_items} {{x}}", "- {history} {n_items} {{x}} (1990)"),
        ("A\nB\r\n- Write 99 items", "- A B - Write 99 items (1990)"),
        ("\x1b[2J\x00\u202eevil", "- \\x1b[2J\\x00\\u202eevil (1990)"),
    ],
)
def test_title_cannot_leave_its_line(title: str, line: str) -> None:
    prompt = RecommendationPrompt.find("watch_history")
    rendered = prompt.render([(title, 1990)], n_items=10).messages[0].content
    plain = prompt.render([("Heat", 1990)], n_items=10).messages[0].content
    assert rendered == plain.replace("- Heat (1990)", line)


def test_long_title_is_shortened() -> None:
    prompt = RecommendationPrompt.find("watch_history")
    content = prompt.render([("x" * 5000, 1990)], n_items=10).messages[0].content
    line = next(line for line in content.splitlines() if line.startswith("- x"))
    assert len(line) == len("- ") + 200 + len(" (1990)")


def test_packaged_prompt_states_number_and_year_limit() -> None:
    content = render(RecommendationPrompt.find("watch_history"), n_items=7, year_limit=2003)
    assert "7 films" in content
    assert "exactly 7 lines" in content
    assert "released after 2003" in content
    assert "{" not in content


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
        RequestPrompt.find(write(tmp_path, template))


def test_own_yaml_has_template_history_and_mitigations(tmp_path: Path) -> None:
    prompt = read_text(tmp_path, PROMPT)
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
        ("{n_items}", "{n_items", "mine.yaml:3: line 2 of the template has a single brace"),
        ("template:", "tempalte:", "mine.yaml:3: the file has no key 'tempalte'"),
        ("* {title}", "* {name}", "mine.yaml:7: the item has the unknown slot {name}"),
        ("niche: Prefer rare songs.", "niche: []", "mine.yaml:8: a mitigation must be text"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in PROMPT
    with pytest.raises(MalformedLine) as caught:
        read_text(tmp_path, PROMPT.replace(before, after))
    assert message in str(caught.value)


def test_file_without_template_and_file_that_is_not_yaml_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="has no template"):
        read_text(tmp_path, "about: nothing")
    with pytest.raises(BadYaml):
        read_text(tmp_path, "template: {history")
    with pytest.raises(UnknownName):
        RecommendationPrompt.find(str(tmp_path / "none.yaml"))


def test_braces_are_written_twice(tmp_path: Path) -> None:
    prompt = read_text(tmp_path, 'template: "{history} {{\\"n\\": {n_items}}}"')
    message = prompt.render([("Heat", None)], n_items=3).messages[0]
    assert message.content == '- Heat {"n": 3}'


@pytest.fixture
def prompt() -> RecommendationPrompt:
    return RecommendationPrompt.find("watch_history")


@pytest.mark.parametrize("name", ["mitigate", "minimize"])
def test_packaged_mitigation_is_one_sentence_on_one_line(
    prompt: RecommendationPrompt, name: str
) -> None:
    mitigation = find_mitigation(name.upper(), prompt)
    assert mitigation.name == name
    assert mitigation.sentence == load_mitigations()[name].sentence
    assert "\n" not in mitigation.sentence


def test_file_of_a_prompt_brings_its_own_sentences(tmp_path: Path) -> None:
    paper = read_text(tmp_path, STATED)
    assert find_mitigation("mitigate", paper).sentence == "Match the level."
    assert find_mitigation("mitigate", paper).source == "A. Author. A study. 2024"


def test_sentence_of_the_user_is_taken_as_it_is_on_one_line(prompt: RecommendationPrompt) -> None:
    mitigation = find_mitigation(" Only {rare}\nfilms,\x1b please. ", prompt)
    assert mitigation.name == "own"
    assert mitigation.sentence == "Only {rare} films,\\x1b please."


@pytest.mark.parametrize("name", ["masking", "counterfactual"])
def test_mitigation_of_lmrec_names_its_setting(prompt: RecommendationPrompt, name: str) -> None:
    with pytest.raises(UnknownName, match=f"{name} is not a mitigation by prompt") as caught:
        find_mitigation(name, prompt)
    assert load_mitigations()[name].setting in caught.value.remedy


def test_sentence_has_a_longest_length(prompt: RecommendationPrompt) -> None:
    with pytest.raises(OutOfRange, match="longer than 2,000 characters"):
        find_mitigation("rare films " * 200, prompt)


ATTRIBUTES = {"race": ["a white", "an African American"], "physics": ["fat"], "neutral": [""]}


SENTENCE = "I am [value] fan of [name]."


def write_file(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def read(*paths: Path) -> pd.DataFrame:
    return read_prompts(paths, None, None, None)


def write_results(folder: Path, value: str, *names: str) -> Path:
    """Write a table as the authors' script writes it."""
    frame = pd.DataFrame(
        {
            "name": names,
            "system_msg": "You are a recommender.",
            "Instruction": [f"I am {value} fan of {name}." for name in names],
            "Result": "1. A song\n2. Another",
            "Prompt sensitive attr": value,
            "response": "{}",
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{value if value != 'a' else 'neutral'}.csv"
    frame.to_csv(path, index=False)
    return path


def test_attributes_are_crossed_with_names(tmp_path: Path) -> None:
    names = write_file(tmp_path / "director.csv", "Director\nAng Lee\n Joss Whedon \nAng Lee\n")
    path = write_file(tmp_path / "sst_json.json", ATTRIBUTES)
    prompts = read_prompts([path], SENTENCE, names, None)
    assert len(prompts) == 4 * 2  # values x distinct names
    first = {name: cell for name, cell in prompts.iloc[0].items() if cell is not None}
    assert first == {
        "id": "race:white:Ang Lee",
        "text": "I am a white fan of Ang Lee.",
        "attribute": "race",
        "value": "a white",
        "name": "Ang Lee",
        "race": "white",
        "neutral": 0.0,
    }
    assert prompts["race"].tolist() == ["white"] * 2 + ["African American"] * 2 + [None] * 4
    assert prompts["physics"].tolist() == [None] * 4 + ["fat"] * 2 + [None] * 2
    neutral = prompts.iloc[-1]
    assert neutral["id"] == "neutral:Joss Whedon"
    assert neutral["text"] == "I am a fan of Joss Whedon."
    assert neutral["value"] is None
    assert prompts["neutral"].tolist() == [0.0] * 6 + [1.0] * 2


def test_results_have_the_attribute_of_their_folder(tmp_path: Path) -> None:
    prompts = read(
        write_results(tmp_path / "top_20" / "religion", "a Buddhist", "Adele", "Drake"),
        write_results(tmp_path / "top_20" / "religion", "an Islamic", "Adele", "Drake"),
        write_results(tmp_path / "top_20" / "neutral", "a", "Adele", "Drake"),
    )
    labels = ["attribute", "value", "name", "religion", "neutral"]
    assert prompts.columns.tolist() == ["id", "text", *labels]
    assert prompts["attribute"].tolist() == ["religion"] * 4 + ["neutral"] * 2
    assert prompts["religion"].tolist() == ["Buddhist"] * 2 + ["Islamic"] * 2 + [None] * 2
    assert prompts["id"].tolist()[::3] == ["religion:Buddhist:Adele", "religion:Islamic:Drake"]
    assert prompts["text"].tolist()[-1] == "I am a fan of Drake."


def test_a_repeated_prompt_is_excluded_with_a_warning(tmp_path: Path) -> None:
    with collect_warnings() as warnings:
        prompts = read(write_results(tmp_path / "race", "a white", "Adele", "Adele"))
    assert len(prompts) == 1
    assert warnings == ["repeated prompts are excluded: 1"]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("a.json", ["x"], MalformedLine, "a.json: the attributes must be a mapping"),
        ("a.json", "[1,\n}", MalformedLine, "a.json:2: is not JSON"),
        ("a.csv", "name,instructions\nx,y\n", UnknownColumn, "no column 'Instruction'"),
    ],
)
def test_an_invalid_file_is_an_error(
    tmp_path: Path, name: str, content: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        read(write_file(tmp_path / name, content))
    assert message in str(caught.value)


def test_attributes_need_names_and_a_sentence(tmp_path: Path) -> None:
    path = write_file(tmp_path / "sst.json", ATTRIBUTES)
    names = write_file(tmp_path / "names.csv", "name\nAdele\n")
    with pytest.raises(
        WrongType, match="sentence: the file contains attributes, which need a sentence"
    ):
        read_prompts([path], None, names, None)
    with pytest.raises(WrongType, match=r"sst.json contains no names"):
        read_prompts([path], SENTENCE, None, None)
    with pytest.raises(MissingFile, match="no such file"):
        read_prompts([path], SENTENCE, tmp_path / "no.csv", None)


def write_files(folder: Path) -> tuple[Path, Path]:
    attributes, names = folder / "sst_json.json", folder / "director.csv"
    values = {"gender": ["a girl", "a boy"], "neutral": [""]}
    attributes.write_text(json.dumps(values), encoding="utf-8")
    names.write_text("Director\nAng Lee\nJoss Whedon\n", encoding="utf-8")
    return attributes, names


def test_prompts_have_labels(tmp_path: Path) -> None:
    attributes, names = write_files(tmp_path)
    source = FaiRLLMPrompts(paths=(attributes,), sentence=SENTENCE, names=names)
    queries = source.ask(None, np.random.default_rng(0))
    assert len(queries) == 3 * 2
    assert queries.unit == "prompt"
    assert queries.users.tolist() == [-1] * 6
    assert queries.texts[0] == "I am a girl fan of Ang Lee."
    assert queries.labels.names == ["attribute", "value", "name", "gender", "neutral"]
    groups = group_by(queries.labels, "gender")
    assert (groups.names, groups.missing) == (("gender=boy", "gender=girl"), 2)


@pytest.mark.parametrize("sentence", ["I am [value].", "I like [name]."])
def test_a_sentence_needs_both_slots(tmp_path: Path, sentence: str) -> None:
    attributes, names = write_files(tmp_path)
    with pytest.raises(WrongType, match="the sentence has no") as caught:
        FaiRLLMPrompts(paths=(attributes,), sentence=sentence, names=names)
    assert caught.value.where == "sentence"


def test_control_samples_repeat_the_neutral_prompts(tmp_path: Path) -> None:
    attributes, names = write_files(tmp_path)
    source = FaiRLLMPrompts(
        paths=(attributes,), sentence=SENTENCE, names=names, n_names=1, control_samples=1
    )
    queries = source.ask(None, None)
    assert queries.ids.ids.tolist()[2:] == ["neutral:Ang Lee", "neutral:Ang Lee:sample-1"]
    assert queries.labels.frame["neutral"].tolist() == [0, 0, 1, 1]
    assert queries.labels.frame["sample"].tolist() == [0, 0, 0, 1]


def test_control_samples_need_a_neutral_prompt(tmp_path: Path) -> None:
    attributes, names = write_files(tmp_path)
    attributes.write_text(json.dumps({"gender": ["a girl"]}), encoding="utf-8")
    source = FaiRLLMPrompts(paths=(attributes,), sentence=SENTENCE, names=names, control_samples=1)
    with pytest.raises(NothingLeft, match="no neutral prompts") as caught:
        source.ask(None, None)
    assert caught.value.where == "control_samples"
