"""Prompts that send the text of a query, and say how to answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from recbias.core.errors import UnknownName
from recbias.core.input_files import has_file
from recbias.core.suggestions import suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.chat.requests import Message
from recbias.language.prompts.prompt_files import load_packaged
from recbias.language.prompts.prompt_slots import SlottedText, parse_slots
from recbias.language.prompts.recommendation_prompts import RecommendationPrompt, RenderedPrompt
from recbias.language.prompts.rubrics import Rubric, load_rubrics

SLOTS = {"request": "request", "n_items": "n_items"}
"""The slots of a template."""


@dataclass(frozen=True)
class RequestPrompt:
    """A prompt with slots for the text of a query and the number of items.

    Args:
        name: The packaged name or the file.
        about: What it asks for, in one sentence.
        source: Where it comes from.
        lines: The lines of the template.
    """

    name: str
    about: str
    source: str
    lines: tuple[SlottedText, ...]

    @property
    def content(self) -> str:
        """The template."""
        return "\n".join(line.show_slots() for line in self.lines)

    def render(self, request: str, n_items: int) -> RenderedPrompt:
        """Return the messages for one query; braces in its text are text."""
        values = {"request": request, "n_items": str(n_items)}
        content = "\n".join(line.fill(values) for line in self.lines)
        return RenderedPrompt((Message("user", content),), 0, 0)


def load_request_prompts() -> dict[str, RequestPrompt]:
    """Return the packaged prompts by name."""
    folder = files("recbias.language.prompts").joinpath("packaged").joinpath("requests")
    with as_file(folder) as path:
        return {file.stem: _parse(read_marked(file), file.stem) for file in path.glob("*.yaml")}


def load_all_prompts() -> Mapping[str, RecommendationPrompt | RequestPrompt | Rubric]:
    """Return all packaged prompts by name: of histories, of requests, and rubrics."""
    return {**load_packaged(), **load_request_prompts(), **load_rubrics()}


def find_request_prompt(name: str) -> RequestPrompt:
    """Return the prompt of a file, or a packaged one.

    Raises:
        UnknownName: The name is neither.
        MalformedLine: The template does not have each slot once.
    """
    packaged = load_request_prompts()
    if name in packaged:
        return packaged[name]
    if has_file(Path(name)):
        return _parse(read_marked(Path(name)), name)
    message = f"{name!r} is neither a packaged prompt of requests nor a file"
    raise UnknownName(message, where="prompt", remedy=suggest(name, packaged))


def _parse(tree: MarkedValue, name: str) -> RequestPrompt:
    top = tree.mapping("the file", ("about", "source", "template"))
    if "template" not in top:
        raise tree.fault("there is no template", remedy="write template: |- and the text below it")
    about, source = (top[key].text(key) if key in top else "" for key in ("about", "source"))
    return RequestPrompt(name, about, source, _parse_template(top["template"]))


def _parse_template(marked: MarkedValue) -> tuple[SlottedText, ...]:
    lines = tuple(
        parse_slots(line, marked, SLOTS, f"line {number} of the template")
        for number, line in enumerate(marked.text("the template").splitlines(), 1)
    )
    slots = [slot for line in lines for slot in line.slots]
    for slot in SLOTS:
        if slot not in slots or (slot == "request" and slots.count(slot) > 1):
            message = f"the template has the slot {{{slot}}} {slots.count(slot)} times"
            raise marked.fault(message, remedy="write {request} once, and {n_items}")
    return lines
