from __future__ import annotations

import pytest

from recbias.cli.catalogue import read_page, split_entries
from recbias.core.docstrings import read_docstring, split_sections
from recbias.registry import REGISTRIES

NAMES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.table]


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=[f"{kind}-{name}" for kind, name in NAMES])
def test_page_has_every_part_of_the_docstring(kind: str, name: str) -> None:
    page = read_page(kind, name)
    sections = split_sections(read_docstring(REGISTRIES[kind].load(name)))
    assert set(sections) <= {"", "Args", "Raises", "Range", "Example", "Source"}
    assert page.summary in " ".join(page.body.split())
    assert [error for error, _ in split_entries(page.errors) if not error.isidentifier()] == []
    assert len(split_entries(sections.get("Args", ""))) == len(page.parameters)
