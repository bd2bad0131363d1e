"""How diagrams look: the colours of the site's own tokens, as Mermaid's theme variables and as CSS.

Mermaid has a variable for most colours. What has none, or is derived from others too dark to read, is set in CSS.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

FONT = 'Arial, "Liberation Sans", Arimo, Helvetica, "DejaVu Sans", sans-serif'
"""Fonts that every system has one of. The text is laid out with widths of about Arial's, whatever font is named."""
FONT_ADJUST = ".5"
"""The height of a small letter, as part of the font's size. It makes wide fonts smaller, so that text fits its box."""

_TOKENS = Path(__file__).parents[1] / "static" / "conversations" / "tokens.css"
_PAIR = re.compile(r"--([\w-]+):\s*light-dark\((#\w{6}), (#\w{6})\)")
_TOKEN = {name: (light, dark) for name, light, dark in _PAIR.findall(_TOKENS.read_text(encoding="utf-8"))}
_FILLS = (
    ("#cfdefa", "#2d4370"),
    ("#c8e6e0", "#23504a"),
    ("#e0dcd3", "#474540"),
    ("#e8d5e8", "#583f5a"),
    ("#d2e3ec", "#2d4b59"),
    ("#e2e6c6", "#484d2a"),
)
"""The colours of parts that differ only by kind (slices, branches, columns), in light and dark. Text stands on them."""
_TABLEAU = (
    "#4e79a7", "#f28e2c", "#e15759", "#76b7b2", "#59a14f", "#edc949", "#af7aa1", "#ff9da7", "#9c755f", "#bab0ab",
)  # fmt: skip
"""The colours of a Sankey diagram, which Mermaid has no variables for."""
_KINDS_MOST = 12
"""How many colours Mermaid numbers."""


def colours(theme: Theme) -> dict[str, str]:
    """Return the site's colours in a theme, by the name of their token."""
    return {name: pair[theme == "dark"] for name, pair in _TOKEN.items()}


def directive(theme: Theme) -> str:
    """Return Mermaid's directive that sets the look and what a diagram may do, on one line."""
    config = {
        "theme": "base",
        "look": "classic",
        "fontFamily": FONT,
        "htmlLabels": False,
        "securityLevel": "strict",
        "themeVariables": _variables(theme),
        "flowchart": {"htmlLabels": False, "nodeSpacing": 32, "rankSpacing": 40, "padding": 12},
        "class": {"htmlLabels": False},
        "sankey": {"linkColor": "source"},
    }
    return f"%%{{init: {json.dumps(config)}}}%%"


def css(theme: Theme) -> str:
    """Return the CSS for what theme variables do not reach. It goes last into the picture."""
    of, fills, strong = colours(theme), _fills(theme), _strong(theme)
    line, edge, box, text = of["text-3"], of["line-mid"], of["bg-raised" if theme == "dark" else "bg-sunk"], of["text"]
    rules = {
        "svg": f"font-family:{FONT};font-size-adjust:{FONT_ADJUST};background:{of['bg']}",
        "[style*='color:'] text": "fill:currentColor;color:inherit",  # chosen by styles.readable
        "text[style*='color:']": "fill:currentColor",
        ".node > rect.basic:not([rx])": "rx:4px",
        "[fill=white]": f"fill:{of['bg']}",
        ".merman-foreignobject-fallback rect": "fill:none",
        ".sequenceNumber": f"fill:{of['bg']}",
        "[id$=sequencenumber] *": f"fill:{line}",
        ".actor-line, .loopLine": f"stroke:{of['line-strong']}",
        "rect.rect": "fill-opacity:.2",
        ".face": f"fill:{fills[0]};stroke:{line}",
        ".mouth": f"stroke:{line}",
        ".packetBlock": f"fill:{box};stroke:{edge}",
        ".packetLabel, .packetTitle": f"fill:{text};font-size:14px",
        ".packetByte": f"fill:{of['text-2']}",
        ".grid .tick line": f"stroke:{edge}",
        "[style*='#087ebf']": f"fill:{of['accent'] if theme == 'light' else fills[0]}",
        **{f"{_of(kind)} line": f"stroke:{line};stroke-width:1.5px" for kind in ("journey", "timeline")},
        f"{_of('timeline')} marker path": f"fill:{line}",
        f"{_of('kanban')} .sections rect": f"fill:{box};stroke:{edge}",
        f"{_of('c4')} text": f"fill:{text}",
        f"{_of('c4')} .c4-shape :is(rect, circle, path, polygon)": f"fill:{box};stroke:{edge}",
        f"{_of('c4')} .c4-external :is(rect, circle, path, polygon)": f"fill:{of['bg']};stroke-dasharray:4",
        f"{_of('sankey')} .link": "mix-blend-mode:normal;stroke-opacity:.3",
    }
    for n, colour in enumerate(strong):
        rules[f"{_of('journey')} .actor-{n}"] = f"fill:{colour};stroke:{of['bg']}"
        rules[f".radarCurve-{n}, .radarLegendBox-{n}"] = f"fill:{colour};fill-opacity:.25;stroke:{colour}"
    for n, colour in enumerate(_TABLEAU):
        rules[f"{_of('sankey')} [fill='{colour}']"] = f"fill:{strong[n % len(strong)]}"
        rules[f"{_of('sankey')} [stroke='{colour}']"] = f"stroke:{strong[n % len(strong)]}"
    return "".join(f"{which}{{{_important(what)}}}" for which, what in rules.items())


def _of(kind: str) -> str:
    """Return the selector of one kind of diagram, as the picture itself names it."""
    return f"[aria-roledescription={kind}]"


def _important(rules: str) -> str:
    return ";".join(f"{rule}!important" for rule in rules.split(";"))


def _strong(theme: Theme) -> list[str]:
    """Return colours for lines and areas on which no text stands."""
    of = colours(theme)
    return [of[name] for name in ("chart-1", "chart-2", "code-key", "line-strong", "ok-fill", "accent")]


def _fills(theme: Theme) -> list[str]:
    return [pair[theme == "dark"] for pair in _FILLS]


def _variables(theme: Theme) -> dict[str, Any]:
    of, fills = colours(theme), _fills(theme)
    text, second, surface = of["text"], of["text-2"], of["bg"]
    box, edge, line = of["bg-sunk"] if theme == "light" else of["bg-raised"], of["line-mid"], of["text-3"]
    named = {
        box: "primaryColor mainBkg actorBkg labelBoxBkgColor stateBkg requirementBackground personBkg"
        " attributeBackgroundColorEven rowEven sectionBkgColor compositeTitleBackground quadrant1Fill quadrant3Fill",
        surface: "background tertiaryColor clusterBkg edgeLabelBackground labelBackground labelBackgroundColor"
        " compositeBackground attributeBackgroundColorOdd rowOdd altSectionBkgColor sectionBkgColor2"
        " relationLabelBackground sequenceNumberColor quadrant2Fill quadrant4Fill innerEndBackground pieStrokeColor"
        " commitLabelBackground altBackground",
        edge: "primaryBorderColor nodeBorder clusterBorder actorBorder labelBoxBorderColor requirementBorderColor"
        " compositeBorder personBorder archGroupBorderColor tagLabelBorder pieOuterStrokeColor secondaryBorderColor"
        " tertiaryBorderColor stateBorder quadrantInternalBorderStrokeFill quadrantExternalBorderStrokeFill"
        " excludeBkgColor taskBorderColor doneTaskBorderColor",
        line: "lineColor signalColor relationColor transitionColor specialStateColor archEdgeColor archEdgeArrowColor"
        " actorLineColor arrowheadColor defaultLinkColor activationBorderColor commitLineColor",
        text: "primaryTextColor secondaryTextColor tertiaryTextColor textColor titleColor actorTextColor nodeTextColor"
        " signalTextColor labelTextColor loopTextColor noteTextColor stateLabelColor requirementTextColor"
        " taskTextColor taskTextLightColor taskTextDarkColor taskTextOutsideColor pieTitleTextColor"
        " pieSectionTextColor pieLegendTextColor classText commitLabelColor tagLabelColor branchLabelColor"
        " quadrant1TextFill quadrant2TextFill quadrant3TextFill quadrant4TextFill quadrantTitleFill"
        " quadrantPointTextFill errorTextColor transitionLabelColor relationLabelColor",
        second: "quadrantXAxisTextFill quadrantYAxisTextFill",
        of["accent-bg"]: "secondaryColor noteBkgColor taskBkgColor activationBkgColor tagLabelBackground errorBkgColor",
        of["accent"]: "taskTextClickableColor",
        of["accent-fill"]: "activeTaskBorderColor quadrantPointFill noteBorderColor",
        of["line"]: "gridColor",
        of["bg-active"]: "doneTaskBkgColor",
        of["bad-bg"]: "critBkgColor",
        of["bad-fill"]: "critBorderColor todayLineColor vertLineColor",
        fills[0]: "activeTaskBkgColor",
    }
    variables: dict[str, Any] = {name: colour for colour, names in named.items() for name in names.split()}
    for n in range(_KINDS_MOST):
        fill = fills[n % len(fills)]
        variables |= {f"cScale{n}": fill, f"cScaleLabel{n}": text, f"cScaleInv{n}": line, f"cScalePeer{n}": line}
        variables |= {f"pie{n + 1}": fill, f"git{n}": fill, f"gitInv{n}": line, f"gitBranchLabel{n}": text}
        variables |= {f"fillType{n}": fill, f"actor{n}": fill, f"venn{n + 1}": fill}
    return variables | {
        "darkMode": theme == "dark",
        "fontFamily": FONT,
        "fontSize": "14px",
        "pieStrokeWidth": "1px",
        "pieOuterStrokeWidth": "1px",
        "pieOpacity": "1",
        "pieTitleTextSize": "16px",
        "pieSectionTextSize": "14px",
        "pieLegendTextSize": "14px",
        "commitLabelFontSize": "12px",
        "tagLabelFontSize": "12px",
        "faceColor": fills[0],
        "xyChart": {
            "backgroundColor": surface,
            "titleColor": text,
            **{f"{axis}Axis{part}Color": second for axis in "xy" for part in ("Title", "Label")},
            **{f"{axis}Axis{part}Color": edge for axis in "xy" for part in ("Tick", "Line")},
            "plotColorPalette": ", ".join(_strong(theme)),
        },
        "radar": {"axisColor": line, "graticuleColor": of["line"], "curveOpacity": 0.4, "graticuleOpacity": 0.6},
        "packet": {
            "startByteColor": second,
            "endByteColor": second,
            "labelColor": text,
            "titleColor": text,
            "blockStrokeColor": edge,
            "blockFillColor": box,
        },
    }
