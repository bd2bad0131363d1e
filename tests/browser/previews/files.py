"""Makes the conversation: `record` records a turn whose tool made one file of each kind, and one that was given."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from conversations.models import File
from tests.conversations.pages.files.filing import GIF, filed, pdf, png
from tests.conversations.support import Story, says

CSV = "Region,Units,Comment\n" + "North,640,All orders were delivered on time\n=1+1,480,\n" * 300
MARKDOWN = """# Q3 report

Revenue grew in **every** region. ![Sales](chart.png) ![Lost](lost.png) ![Remote](HOSTILE/x.png)

| Region | Units |
|---|---:|
| North | 640 |
"""
PAGE = """<!doctype html><title>Report</title>
<link rel="stylesheet" href="HOSTILE/x.css"><link rel="preconnect" href="HOSTILE"><base href="HOSTILE/">
<meta http-equiv="refresh" content="0; url=HOSTILE/refresh">
<style>@import url(HOSTILE/y.css); body { background: url(HOSTILE/z.png); color: rgb(1, 2, 3) }</style>
<h1>Quarterly report</h1><p onclick="top.document.title='RAN'">Sales grew.</p>
<a id="away" href="HOSTILE/link" ping="HOSTILE/ping">Go</a>
<a id="top" href="/new/" target="_top">Up</a>
<form action="HOSTILE/form"><button id="send">Send</button></form>
<img src="HOSTILE/i.png" onerror="top.document.title='RAN'"><img id="inline" src="data:image/gif;base64,AAAA">
<video poster="HOSTILE/p.png" src="HOSTILE/v.mp4"></video><object data="HOSTILE/o"></object>
<iframe src="HOSTILE/frame"></iframe><iframe srcdoc="<script>top.document.title='RAN'</script>"></iframe>
<svg><script>top.document.title='RAN'</script><use href="HOSTILE/u.svg#a"/></svg>
<script>top.document.title = 'RAN'; fetch('HOSTILE/fetch')</script><script src="HOSTILE/s.js"></script>"""
SVG_WITH_SCRIPT = """<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8">
<script>top.document.title='RAN'</script><image href="HOSTILE/i.png"/>
<rect width="8" height="8" onload="top.document.title='RAN'"/></svg>"""
"""HOSTILE stands for the address of another site, to which nothing may be sent."""
NAMES = (
    "chart.png", "logo.svg", "polyglot.html", "report.pdf", "sales.csv", "q3.md", "page.html", "fake.png", "totals.py",
    "line.log", "data.bin", "empty.txt",
)  # fmt: skip
IMAGES = ("chart.png", "logo.svg", "polyglot.html")


def contents(hostile: str) -> dict[str, bytes]:
    """The content of each file, by NAMES. `hostile`: the address to which hostile ones would send their readers."""
    page = PAGE.replace("HOSTILE", hostile).encode()
    svg, markdown = SVG_WITH_SCRIPT.replace("HOSTILE", hostile), MARKDOWN.replace("HOSTILE", hostile)
    code = b"def total(rows):\n    return sum(rows)  # all of them\n"
    pictures = [png(640, 360), svg.encode(), GIF + page]
    others = [pdf("Hello from a PDF"), CSV.encode(), markdown.encode(), page, page, code]
    return dict(zip(NAMES, [*pictures, *others, b"x" * 500_000, bytes(range(256)), b""], strict=True))


@transaction.atomic  # else the site's worker takes up the turn at once
def record(username: str, hostile: str) -> tuple[int, dict[str, int]]:
    """Record the turn of this user. Returns the ids of its conversation and of its files, by name."""
    story = Story(User.objects.get(username=username), "Make a file of each kind.")
    story.asks_model()
    call = story.call("report.write")
    story.answers(says("Here they are."), call)
    story.begins(call)
    made: list[File] = [
        filed(story.conversation, name, content, "text/html") for name, content in contents(hostile).items()
    ]
    for file in made:
        story.emits(call, "file", file=file.pk, name=file.name, summary="")
    story.comes_to(call, "done")
    made.append(filed(story.conversation, "photo.png", png(300, 200), "image/png", prompt=story.prompt))
    story.asks_model()
    story.answers(says("![Sales](chart.png) ![Lost](lost.png)"))
    story.ends()
    return story.conversation.pk, {file.name: file.pk for file in made}
