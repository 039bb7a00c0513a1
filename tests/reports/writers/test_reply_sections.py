from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from support.chat.chat_server import Answer, make_reply, serve_chat
from support.specs import make_small_spec

HOSTILE = "<b>No|Such</b> \x1b[2J\ud800 Film"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run whose every third reply is a refusal."""
    n_sent = 0

    def answer(payload: object) -> Answer:
        nonlocal n_sent
        n_sent += 1
        if n_sent % 3 == 0:
            return Answer(make_reply("", "content_filter"))
        return Answer(make_reply(f"1. {HOSTILE} (1990)\n2. Nor This One (1991)"))

    with serve_chat(answer) as server:
        llm = {"model": "small", "base_url": server.base_url, "concurrency": 1}
        spec = make_small_spec(
            models=["MostPop", {"name": "WOK", "llm": llm}],
            report={"formats": ["md", "html", "json"]},
        )
        return recbias.run(spec, out=tmp_path_factory.mktemp("replies")).folder


def test_markdown_has_the_outcomes_and_the_unmatched_titles(reports: Path) -> None:
    text = (reports / "report.md").read_text(encoding="utf-8")
    section = text[text.index("## Replies of language models") : text.index("## Plots")]
    # 60 users: 40 complete replies and 20 refusals, each of 10 tokens in and 5 out.
    assert "| WOK | 60 | 40 | 0 | 20 | 0 | 0 | 0 | 600 | 300 |" in section
    assert "| WOK | Nor This One (1991) | unknown | 40 |" in section
    assert r"&lt;b&gt;No\|Such&lt;/b&gt; \\x1b\[2J" in section


def test_html_has_a_section_of_replies_with_escaped_titles(reports: Path) -> None:
    page = (reports / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<h2 id="replies">') : page.index('<h2 id="plots">')]
    assert "Nor This One (1991)" in section
    assert "&lt;b&gt;No|Such&lt;/b&gt; \\x1b[2J" in section
    assert "<b>" not in section
    assert '<a href="#replies">' in page
