"""Files of prompts: the project's own YAML, and the file of the paper's prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal, cast

from recbias.core.errors import UnknownName
from recbias.core.input_files import has_file
from recbias.core.suggestions import normalize_name, suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.prompts.prompt_slots import SlottedText, parse_slots
from recbias.language.prompts.recommendation_prompts import HistoryFormat, RecommendationPrompt

SLOTS = {
    **{slot: slot for slot in ("history", "candidates", "n_items", "year_limit", "mitigation")},
    "watch_history": "history",
    "nr_items": "n_items",
}
"""The slots of a template, by their spellings."""

ITEM_SLOTS = {"title": "title", "year": "year"}
"""The slots of the line of an item."""

DEFAULT_ITEM = "- {title} ({year})"
"""The line of an item in a file that does not say how to write it."""

_YEAR_WITH_BRACKETS = re.compile(r"\s*[(\[]\{year\}[)\]]|[\s,]*\{year\}")


def load_packaged() -> dict[str, RecommendationPrompt]:
    """Return the packaged prompts by name."""
    with as_file(files("recbias.language.prompts").joinpath("packaged")) as folder:
        paths = sorted(folder.glob("*.yaml"))
        return {path.stem: _parse_prompt(read_marked(path), path.stem) for path in paths}


def find_prompt(name: str) -> RecommendationPrompt:
    """Return the prompt of a file, or a packaged one.

    Raises:
        UnknownName: The name is neither.
        MalformedLine: The file is not a prompt; see ``read_prompt``.
    """
    packaged = {normalize_name(spelling): prompt for spelling, prompt in load_packaged().items()}
    if normalize_name(name) in packaged:
        return packaged[normalize_name(name)]
    if has_file(Path(name)):
        return read_prompt(Path(name))
    names = [prompt.name for prompt in packaged.values()]
    message = f"{name!r} is neither a packaged prompt nor a file"
    raise UnknownName(message, where="prompt", remedy=suggest(name, names))


def read_prompt(path: Path) -> RecommendationPrompt:
    """Return the prompt of a file.

    The project's own format has ``template`` and may have ``about``, ``source``, ``history`` (with
    ``order``, ``max_items`` and ``item``) and ``mitigations`` (name to sentence). A file with
    ``base_prompt`` is in the format of the paper: its ``extra_instructions`` are the mitigations.

    Raises:
        MissingFile: The file does not exist.
        BadYaml: The file is not YAML.
        MalformedLine: The template lacks the slot of the history, or has an unknown slot or a
            single brace; or a key or value is invalid.
    """
    return _parse_prompt(read_marked(path), str(path))


def _parse_prompt(tree: MarkedValue, name: str) -> RecommendationPrompt:
    top = tree.mapping("the file")
    if "base_prompt" in top:
        return _parse_paper(top, name)
    tree.mapping("the file", ("about", "source", "template", "history", "mitigations"))
    if "template" not in top:
        raise tree.fault("there is no template", remedy="write template: |- and the text below it")
    about, source = (top[key].text(key) if key in top else "" for key in ("about", "source"))
    written = top["mitigations"].mapping("mitigations") if "mitigations" in top else {}
    mitigations = {key: value.text("a mitigation") for key, value in written.items()}
    history = _parse_history(top.get("history", MarkedValue({}, tree.where)))
    lines = _parse_template(top["template"])
    return RecommendationPrompt(name, about, source, lines, history, mitigations)


def _parse_paper(top: Mapping[str, MarkedValue], name: str) -> RecommendationPrompt:
    lines = _parse_template(top["base_prompt"])
    extra = (
        top["extra_instructions"].mapping("extra_instructions")
        if "extra_instructions" in top
        else {}
    )
    mitigations = {
        key: value.value["text"].text("text")
        for key, value in extra.items()
        if isinstance(value.value, dict) and "text" in value.value
    }
    source = top["source"].mapping("source") if "source" in top else {}
    citation = [source[key].text(key) for key in ("authors", "title", "year") if key in source]
    history = _parse_history(MarkedValue({}, top["base_prompt"].where))
    return RecommendationPrompt(
        name, "The prompt of a paper.", ". ".join(citation), lines, history, mitigations
    )


def _parse_template(marked: MarkedValue) -> tuple[SlottedText, ...]:
    lines = tuple(
        parse_slots(line, marked, SLOTS, f"line {number} of the template")
        for number, line in enumerate(marked.text("the template").splitlines(), 1)
    )
    slots = [slot for line in lines for slot in line.slots]
    if slots.count("history") != 1:
        message = f"the template has the slot {{history}} {slots.count('history')} times"
        raise marked.fault(message, remedy="write {history} once, on a line of its own")
    return lines


def _parse_history(marked: MarkedValue) -> HistoryFormat:
    settings = marked.mapping("the history", ("order", "max_items", "item"))
    item = settings.get("item", MarkedValue(DEFAULT_ITEM, marked.where))
    text = item.text("item")
    slotted = parse_slots(text, item, ITEM_SLOTS, "the item")
    if "title" not in slotted.slots or "\n" in text:
        raise item.fault(
            "the item must be one line with {title}", remedy=f"write {DEFAULT_ITEM!r}"
        )
    undated = parse_slots(_YEAR_WITH_BRACKETS.sub("", text), item, ITEM_SLOTS, "the item")
    return HistoryFormat(slotted, undated, _parse_order(settings), _parse_maximum(settings))


def _parse_order(settings: Mapping[str, MarkedValue]) -> Literal["oldest_first", "newest_first"]:
    if "order" not in settings:
        return "oldest_first"
    order = settings["order"].text("order")
    if order not in {"oldest_first", "newest_first"}:
        message = f"the order is oldest_first or newest_first, not {order!r}"
        raise settings["order"].fault(message)
    return cast("Literal['oldest_first', 'newest_first']", order)


def _parse_maximum(settings: Mapping[str, MarkedValue]) -> int | None:
    marked = settings.get("max_items")
    if marked is None or not marked.value:
        return None
    text = marked.text("max_items")
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise marked.fault(f"max_items is a whole number from 1, or null, not {text!r}")
    return int(text)
