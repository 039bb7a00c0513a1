"""The documentation site: built without warnings, linked, searchable, without other servers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from docs.conftest import ROOT, Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REPOSITORY = "https://github.com/recbias/recbias/"
SEARCHED = {
    "nDCG": "plugins/metrics/nDCG.html",
    "popularity lift": "plugins/metrics/popularity_lift.html",
    "exit code": "commands.html",
    "novelty": "guides/choose-a-measure.html",
    "demographic parity": "plugins/metrics/EXP.html",
}
AUDITED = ("commands.html", "plugins/metrics/nDCG.html", "python-reference.html")


class Links(HTMLParser):
    """The ids of a page, the links in it and the files that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" or "src" in attributes:
            self.loaded.append(attributes.get("src", attributes.get("href", "")))


@pytest.fixture(scope="session")
def pages(site: Site) -> dict[Path, Links]:
    return {
        path: Links(path.read_text("utf-8"))
        for path in sorted(site.folder.rglob("*.html"))
        if path.name != "404.html"  # its links start at the root of a server
    }


@pytest.fixture
def requests(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page of the browser, and the addresses that it asks for."""
    page, addresses = browser.new_page(), []
    page.on("request", lambda request: addresses.append(request.url))
    yield page, addresses
    page.close()


def test_the_site_is_built_without_warnings(site: Site) -> None:
    assert "WARNING" not in site.report
    assert "ERROR" not in site.report


def test_every_page_of_docs_is_in_the_site(site: Site) -> None:
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site.folder) for path in site.folder.rglob("*.html")}
    assert {path.with_suffix(".html") for path in sources} <= built


def test_links_between_pages_lead_to_a_file_and_a_heading(pages: dict[Path, Links]) -> None:
    broken = [
        f"{path.name}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not urlsplit(link).scheme and not has_target(pages, path, link)
    ]
    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def has_target(pages: dict[Path, Links], path: Path, link: str) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target not in pages:
        return target.is_file()
    return not parts.fragment or unquote(parts.fragment) in pages[target].ids


def find_repository_links() -> set[str]:
    """Return the absolute links to files of the repository, without its address."""
    paths = [
        ROOT / name for name in ("README.md", "CONTRIBUTING.md", "mkdocs.yml", "pyproject.toml")
    ]
    texts = [path.read_text("utf-8") for path in [*paths, *(ROOT / "docs").rglob("*.md")]]
    address = rf"{REPOSITORY}(?:blob|tree|raw)/main/([\w./#-]+)"
    return {link for text in texts for link in re.findall(address, text)}


def test_links_of_the_repository_lead_to_files() -> None:
    links = re.findall(r"\]\((?!\w+:)([^)]+)\)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert links
    assert [link for link in links if not has_file(link)] == []


def test_links_of_the_readme_are_absolute() -> None:
    """PyPI shows it too."""
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert len(links) > 5
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_absolute_links_to_the_repository_lead_to_files() -> None:
    links = find_repository_links()
    assert links
    assert [link for link in links if not has_file(link)] == []


def has_file(link: str) -> bool:
    """Say whether the repository has a file, and in it the heading of the fragment."""
    name, _, fragment = link.partition("#")
    path = ROOT / name
    if not fragment:
        return path.exists()
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return fragment in {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings
    }


def test_lists_and_tables_are_shown_as_such(site: Site) -> None:
    """The builder needs a blank line before them, unlike a git host."""
    source = re.compile(r"<p>[^<]*(?:\n(?:- |\d\. )|\| ?:?-{2,})")
    assert source.search("<p>Two:\n- a\n- b</p>")
    assert source.search("<p>Two:\n| a | b |\n|---|---|</p>")
    pages = {path.name: path.read_text("utf-8") for path in site.folder.rglob("*.html")}
    assert [name for name, text in pages.items() if source.search(text)] == []


def test_the_search_index_has_the_terms_of_the_field(site: Site) -> None:
    index = json.loads((site.folder / "search" / "search_index.json").read_text("utf-8"))
    texts = " ".join(f"{entry['title']} {entry['text']}" for entry in index["docs"])
    for term in ("nDCG", "popularity", "log_popularity_difference", "Welch", "exit code"):
        assert term in texts, term


def test_pages_load_no_file_of_another_server(pages: dict[Path, Links]) -> None:
    elsewhere = {
        f"{path.name}: {address}"
        for path, page in pages.items()
        for address in page.loaded
        if urlsplit(address).scheme in {"http", "https"} or address.startswith("//")
    }
    assert elsewhere == set()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("term", SEARCHED)
def test_the_search_finds_pages_opened_from_a_folder(
    site: Site, requests: tuple[Page, list[str]], term: str
) -> None:
    page, addresses = requests
    page.goto((site.folder / "index.html").as_uri())
    page.keyboard.press("f")
    page.keyboard.type(term)
    page.wait_for_selector(".md-search-result__item a")
    results = page.locator(".md-search-result__item a").evaluate_all(
        "links => links.map(link => link.href)"
    )
    assert any(SEARCHED[term] in result for result in results), results
    assert [address for address in addresses if not address.startswith(("file:", "data:"))] == []
    assert len(addresses) > 3


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("name", AUDITED)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(
    site: Site, requests: tuple[Page, list[str]], name: str, scheme: Literal["light", "dark"]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, _ = requests
    page.emulate_media(color_scheme=scheme)
    page.goto((site.folder / name).as_uri())
    violations = Axe().run(page).response["violations"]
    assert {
        violation["id"]: [node["html"][:120] for node in violation["nodes"]]
        for violation in violations
    } == {}


def test_the_configuration_names_no_repository_that_the_page_would_ask() -> None:
    """With ``repo_url`` every page asks the interface of GitHub for the number of stars."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    assert "repo_url" not in config
    assert config["theme"]["font"] is False
