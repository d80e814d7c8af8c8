"""The documents are true: code in them runs, queries in them parse, files and links in them exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

import watersmeet as wm
from watersmeet.cli.app import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [str(d.relative_to(ROOT)) for d in DOCUMENTS]


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def paragraphs(document: str) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", (ROOT / document).read_text(), flags=re.MULTILINE | re.DOTALL)
    parts = [p.strip("\n") for p in text.split("\n\n")]
    return [p for p in parts if p and not p.startswith(("#", "|", "    "))]


def files_named(text: str) -> list[str]:
    """What is in back-quotes and looks like a path of this repository."""
    quoted = re.findall(r"`([^`\n]+)`", text)
    roots = {p.name for p in ROOT.iterdir()}
    return [q for q in quoted if re.fullmatch(r"[\w./-]+", q) and ("/" in q or "." in q) and q.split("/")[0] in roots]


LINK = r"\]\(([^)#:]+)(?:#[^)]*)?\)"


def test_docs_have_what_is_checked_below() -> None:
    for language in ("python", "sql", "sh"):
        assert sum(len(blocks(document, language)) for document in NAMES) >= 1, language
    assert sum(len(re.findall(LINK, (ROOT / document).read_text())) for document in NAMES) >= 10
    assert sum(len(files_named((ROOT / document).read_text())) for document in NAMES) >= 50


@pytest.mark.parametrize("document", NAMES)
def test_docs_python_runs(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "document"}
    for block in blocks(document, "python"):
        exec(compile(block, document, "exec"), names)


@pytest.mark.parametrize("document", NAMES)
def test_docs_queries_parse_and_print_back(document: str) -> None:
    for block in blocks(document, "sql"):
        query = wm.parse(block)
        assert wm.parse(str(query)) == query


@pytest.mark.parametrize("document", NAMES)
def test_docs_commands_exist(document: str) -> None:
    verbs = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for block in blocks(document, "sh"):
        for line in block.splitlines():
            words = line.split("#")[0].split()
            if words and words[0] == "make":
                assert words[1] in verbs, line
            elif words and words[0] == "watersmeet":
                assert CliRunner().invoke(app, [words[1], "--help"]).exit_code == 0, line


@pytest.mark.parametrize("document", NAMES)
def test_docs_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    for target in re.findall(LINK, text):
        assert ((ROOT / document).parent / target).exists(), target


@pytest.mark.parametrize("document", NAMES)
def test_docs_name_files_that_exist(document: str) -> None:
    made = {"examples/data", "examples/out", "demo-out"}
    missing = [f for f in files_named((ROOT / document).read_text()) if not (ROOT / f).exists() and f not in made]
    planned = {"watersmeet/retain", "watersmeet/adapt", "watersmeet/spark", "watersmeet/ui"}
    assert [f for f in missing if not any(f == p or f.startswith(f"{p}/") for p in planned)] == []


def test_docs_architecture_names_a_file_per_paragraph() -> None:
    for paragraph in paragraphs("docs/internals/architecture.md")[1:]:
        named = files_named(paragraph)
        assert named, paragraph
        assert all((ROOT / f).exists() for f in named), paragraph


def test_docs_architecture_names_every_package() -> None:
    text = (ROOT / "docs/internals/architecture.md").read_text()
    packages = [p.parent for p in (ROOT / "watersmeet").glob("*/__init__.py")]
    modules = [p for p in (ROOT / "watersmeet").glob("*.py") if p.name != "__main__.py"]
    assert [str(p) for p in packages + modules if f"`{p.relative_to(ROOT)}`" not in text] == []


def test_docs_readme_has_the_figures_of_the_last_benchmarks() -> None:
    written = runpy.run_path(str(ROOT / "scripts" / "readme_figures.py"))["written"]
    text = (ROOT / "README.md").read_text()
    assert written(text) == text, "run scripts/readme_figures.py"


def test_docs_decisions_have_at_most_six_lines_and_come_in_order() -> None:
    text = (ROOT / "docs/internals/decisions.md").read_text()
    found = [p for p in text.split("\n\n") if p.startswith("**")]
    assert [p[:60] for p in found if len(p.strip().splitlines()) > 6] == []
    numbers = [int(re.match(r"\*\*(\d+)\.", p)[1]) for p in found]  # type: ignore[index]
    assert len(numbers) > 80 and numbers == sorted(set(numbers))
