"""The templates of the LMRec study, as the YAML of its paper and the JSON of its authors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from recbias.core.errors import MissingFile
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.templates.template_parts import Group, merge_groups, parse_kind, parse_kinds
from recbias.language.templates.template_sets import Kind, TemplateSet

PLACEHOLDERS = {"NAME": "name", "1ST RELP": "first", "2ND RELP": "second", "LOCATION": "location"}
"""The slots in the paper, and their names here."""

RELIGIONS = {"church": "christian", "mosque": "muslim", "synagogue": "jewish"}
"""The religion of each religious place in the paper."""

SLOTS = {"names": ("name",), "relationships": ("first", "second"), "occupations": ("location",)}
"""The slots of the kinds in the authors' files; the slot of any other kind is named ``word``."""

LABELS = {
    **dict.fromkeys(("female", "male"), "gender"),
    **dict.fromkeys(("white", "black"), "race"),
    **dict.fromkeys(("old", "young"), "age"),
}
"""The label of which a list in the authors' files is a value; any other is one of ``label``."""

PARTNERS = {
    "female": ("girlfriend", "wife", "fiancee"),
    "male": ("boyfriend", "husband", "fiance"),
}
"""The second words of couples in the authors' sentences; none of their files lists them."""


def parse_paper(tree: MarkedValue) -> TemplateSet:
    """Return the templates of the paper's YAML: ``templates`` and ``substitutions``."""
    top = tree.mapping("the file")
    if "templates" not in top:
        raise tree.fault("there are substitutions, but no templates")
    node = top["substitutions"]
    groups = _collect_paper_groups(node)
    word_lists = {slot: merge_groups(slot, groups[slot], node) for slot in groups}
    kinds = parse_kinds(top["templates"], word_lists, PLACEHOLDERS)
    source = top["source"].mapping("source") if "source" in top else {}
    citation = [source[key].text(key) for key in ("authors", "title", "year") if key in source]
    return TemplateSet("The templates of the LMRec paper.", ". ".join(citation), kinds)


def _collect_paper_groups(node: MarkedValue) -> dict[str, list[Group]]:
    substitutions = node.mapping("substitutions")
    groups: dict[str, list[Group]] = {}
    if "race_names" in substitutions:
        groups["name"] = [
            Group(group.words, {"race": race, **group.labels})
            for race, names in substitutions["race_names"].mapping("race_names").items()
            for group in _iterate_genders(names)
        ]
    if "relationships" in substitutions:
        couples = substitutions["relationships"].mapping("relationships", ("first", "second"))
        groups |= {slot: list(_iterate_genders(words)) for slot, words in couples.items()}
    places = [
        Group((word,), _label_place(word) | labels)
        for key, labels in (("locations", {}), ("religion", {"place": "religion"}))
        if key in substitutions
        for word in substitutions[key].entries(key)
    ]
    return {**groups, "location": places} if places else groups


def _iterate_genders(node: MarkedValue) -> Iterator[Group]:
    for gender, words in node.mapping("words by gender").items():
        yield Group(words.entries(gender), {"gender": gender})


def _label_place(node: MarkedValue) -> dict[str, str]:
    religion = RELIGIONS.get(node.text("a place"))
    return {"place": "religion", "religion": religion} if religion else {"place": "location"}


def parse_authors_json(tree: MarkedValue, words: Sequence[Path]) -> TemplateSet:
    """Return the templates of the authors' JSON: sentences of each kind, with ``{}`` for a word.

    Kinds without a file of that name, with their words by label, are excluded; MissingFile if
    there is none.
    """
    templates = tree.mapping("the templates")
    words_of_kinds = {path.stem: read_marked(path) for path in words}
    for name, node in words_of_kinds.items():
        if name not in templates:
            remedy = suggest(name, templates)
            raise node.fault(f"there are no templates of the kind {name!r}", remedy=remedy)
    if not words_of_kinds:
        remedy = "list a file for each kind: words: [../example_labels/names.json]"
        raise MissingFile("the templates have no words", where=tree.where, remedy=remedy)
    excluded = [name for name in templates if name not in words_of_kinds]
    if excluded:
        warn(f"templates without a file of words are excluded: {', '.join(excluded)}")
    kinds = tuple(
        _parse_authors_kind(name, templates[name], node) for name, node in words_of_kinds.items()
    )
    source = "The LMRec authors' release, https://github.com/TinaBBB/Unintended-Bias-LMRec"
    return TemplateSet("The templates of the LMRec authors' release.", source, kinds)


def _parse_authors_kind(name: str, node: MarkedValue, words: MarkedValue) -> Kind:
    slots = SLOTS.get(name, ("word",))
    word_lists = {slots[0]: merge_groups(slots[0], _iterate_labels(words, slots[0]), words)}
    if len(slots) > 1:
        partners = [
            Group(tuple(MarkedValue(word, words.where) for word in gendered), {"gender": gender})
            for gender, gendered in PARTNERS.items()
        ]
        word_lists[slots[1]] = merge_groups(slots[1], partners, words)
    return parse_kind(name, _name_slots(node, slots), word_lists, {})


def _iterate_labels(node: MarkedValue, slot: str) -> Iterator[Group]:
    for value, words in node.mapping("the words").items():
        labels = {} if value == "all" else {LABELS.get(value, "label"): value}
        if slot == "location":
            labels["place"] = "location"
        yield Group(words.entries(value), labels)


def _name_slots(node: MarkedValue, slots: tuple[str, ...]) -> MarkedValue:
    """Return sentences with ``{}`` replaced by the slots in order, with a pronoun between two."""
    fillers = [f"[{slots[0]}]", *(["his/her", f"[{slots[1]}]"] if len(slots) > 1 else [])]
    sentences: list[MarkedValue] = []
    for marked in node.entries("the templates"):
        texts = marked.text("a template").split("{}")
        if len(texts) != len(fillers) + 1:
            message = f"{len(texts) - 1} pairs of braces, not {len(fillers)}: {marked.value!r}"
            raise marked.fault(message)
        pairs = zip(texts, [*fillers, ""], strict=True)
        sentence = "".join(text + filler for text, filler in pairs)
        sentences.append(MarkedValue(sentence, marked.where))
    return MarkedValue(tuple(sentences), node.where)
