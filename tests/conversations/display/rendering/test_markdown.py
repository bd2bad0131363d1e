"""Markdown whole: what chats write, as HTML that asks nothing of any other site."""

from __future__ import annotations

import re
import time

import pytest

from conversations.display.rendering.markdown import render
from conversations.display.rendering.place import Place
from conversations.display.rendering.renderer import DIAGRAMS_MOST
from tests.budget import share

PLACE = Place("5", "/prompts/5/diagrams/", "/c/3/images/")
LENGTH = 200_000


def html(text: str) -> str:
    return str(render(text, PLACE)).strip()


def test_task_lists() -> None:
    """The box says in words whether it is done, and nobody can tick it."""
    shown = html("- [ ] to do\n- [x] **done**\n- plain\n\n1. [x] numbered")
    assert '<li class="task"><span class="tick" role="img" aria-label="To do">☐</span>' in shown
    assert shown.count('aria-label="Done"') == 2
    assert "<li>plain</li>" in shown
    assert "<input" not in shown
    assert html("[ ] no list") == '<p dir="auto">[ ] no list</p>'


def test_definition_lists() -> None:
    shown = html("Term\n: One **meaning**\n: Another\n\nNext\n: Its own")
    assert re.sub(r"\s+", "", shown) == re.sub(
        r"\s+",
        "",
        "<dl><dt>Term</dt><dd>One <strong>meaning</strong></dd><dd>Another</dd><dt>Next</dt><dd>Its own</dd></dl>",
    )


def test_footnotes_lead_there_and_back() -> None:
    """Their ids have the name of the place, so that two answers on a page do not share them."""
    shown = html("Said[^1] and said again[^1], and more[^note].\n\n[^1]: The *source*.\n[^note]: Another.")
    assert '<sup id="fnref-5-1"><a href="#fn-5-1" aria-label="Footnote 1">1</a></sup>' in shown
    assert shown.count('id="fnref-5-1"') == 1
    assert '<div class="footnote" id="fn-5-1"><sup><a class="back" href="#fnref-5-1"' in shown
    assert "The <em>source</em>." in shown
    assert 'href="#fn-5-note"' in shown
    assert "<a" not in render("Said[^1].\n\n[^1]: Where.")


def test_a_bracket_is_no_footnote() -> None:
    assert html("the class [^abc] of all") == '<p dir="auto">the class [^abc] of all</p>'


@pytest.mark.parametrize("label", ['"onload=x', "<b>", "a%b", "ü", "a/b", "&quot;"])
def test_a_footnote_s_label_is_text(label: str) -> None:
    shown = html(f"x[^{label}]\n\n[^{label}]: y")
    for tag in re.findall(r"<[^>]*>", shown):
        assert re.fullmatch(r'</?[a-z]+( [a-z-]+="[^"<>]*")*>', tag)
        assert not re.search(r' on[a-z]+="', tag)


def test_links_say_where_they_go() -> None:
    """The site stands beside a link that does not say it. Its title is the address, whatever its author wrote."""
    shown = html('[your bank](https://evil.example/login "https://bank.example")')
    assert 'title="https://evil.example/login"' in shown
    assert "bank.example" not in shown.replace("evil.example", "")
    assert shown.endswith('your bank</a><span class="to"> (evil.example)</span></p>')
    assert '<span class="to">' not in html("[see docs.example](https://docs.example/a)")
    assert '<span class="to"> (xn--pple-43d.com)</span>' in html("[apple](https://\u0430pple.com)")
    assert '<span class="to"> (evil.example)</span>' in html("[bank.example](https://bank.example@evil.example/)")
    assert 'target="_blank" rel="noopener noreferrer nofollow"' in shown
    assert "(ann@site.example)</span>" in html("[write](mailto:ann@site.example)")


@pytest.mark.parametrize("before", ["//", "///", "https:///", "https:/", "https:", "HTTP:////"])
def test_another_site_is_named_however_it_is_spelled(before: str) -> None:
    """Browsers go to the same place for any number of slashes."""
    shown = html(f"[next]({before}evil.example/login)")
    assert shown.endswith('next</a><span class="to"> (evil.example)</span></p>')
    assert 'target="_blank" rel="noopener noreferrer nofollow"' in shown


def test_links_within_the_site_stay_in_place() -> None:
    assert html("[next](?message=hi)") == '<p dir="auto"><a href="?message=hi">next</a></p>'
    assert html("[there](/c/4/)") == '<p dir="auto"><a href="/c/4/">there</a></p>'


def test_addresses_become_links() -> None:
    assert '<a href="https://docs.example/a_b"' in html("see https://docs.example/a_b, please")
    for text in ("main.rs", "example.com", "a@b.example", "`https://a.example`", "ftp.example"):
        assert "<a" not in html(text)


def test_images_are_files_of_the_conversation() -> None:
    shown = html("![Costs](out/chart%201.png)")
    assert '<img class="own" src="/c/3/images/out/chart%201.png" alt="Costs" loading="lazy">' in shown
    assert 'alt="chart.png"' in html("![](./chart.png)")


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/p.png?q=secret", "//evil.example/p.png", "/files/1/", "data:image/png;base64,AAAA",
     "javascript:alert(1)", "blob:x", "http:/x", "https:x", "\\\\evil.example/p.png", "&#104;ttps://evil.example/p.png",
     "../../files/7/", "a/../../b", "%2e%2e/x", "/\\evil.example/p.png", "?x", "#x", "file:///etc/passwd"],
)  # fmt: skip
def test_no_other_image_is_loaded(address: str) -> None:
    shown = html(f"![words]({address})")
    for source in re.findall(r'src="([^"]*)"', shown):
        assert source.startswith("/c/3/images/")
        assert "//" not in source
        assert ".." not in source
    assert "evil" not in "".join(re.findall(r'(?:src|href|srcset)="(?!/c/3/images/)([^"]*)"', shown))


def test_without_a_place_nothing_is_loaded() -> None:
    shown = render("![a](b.png)\n\n```mermaid\ngraph TD\n```")
    assert "<img" not in shown
    assert "[Image not shown: a]" in shown
    assert '<div class="code">' in shown


def test_a_fence_of_mermaid_is_a_diagram_with_its_source() -> None:
    shown = html("> ```mermaid\n> graph TD; A-->B\n> ```")
    assert re.search(r'<img[^>]* src="/prompts/5/diagrams/[0-9a-f]{64}\.svg\?theme=light"', shown)
    assert "graph TD; A--&gt;B" in shown
    assert "<img" not in html("```mermaidx\ngraph TD\n```")


def test_so_many_diagrams_are_code() -> None:
    """An answer of nothing but fences would be a page of megabytes."""
    fence = "```mermaid\npie\n```\n"
    assert html(fence * DIAGRAMS_MOST).count("<figure") == DIAGRAMS_MOST
    more = html(fence * (DIAGRAMS_MOST + 5))
    assert more.count("<figure") == DIAGRAMS_MOST
    assert more.count('<div class="code">') == 5


@pytest.mark.parametrize(
    "unit",
    share(
        ["$", "$a", "$a ", "$$", "$$a\n", "$$\n", "\\(", "\\[", "\\[\n", "\\(x\\)", "[^1]", "[^1]: x\n", "[^", "- [ ] ",
         "- [ ] a\n", "a\n: b\n", ": ", "https://a.example/ ", "https://", "mailto:", "http://a.b/(", "![a](b.png) ",
         "```mermaid\n", "```mermaid\na\n```\n", "```py\nx = 1\n```\n", "$x$ ", "$\\frac{",
         "[a](https://b.example) ", "://", "www.", "~", "a:b@c"],
        of=4,
    ),
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "> {} x"])
def test_200_000_characters_are_read_in_time(unit: str, around: str) -> None:
    text = around.format(unit * (LENGTH // len(unit)))
    began = time.thread_time()
    shown = html(text)
    assert time.thread_time() - began < 20  # seconds of CPU: the slowest takes five, one that grows by squares minutes
    assert len(shown) < 60 * LENGTH
