"""Formulas: drawn if they can be read, shown as their source if not, and never a way to anything else."""

from __future__ import annotations

import re
import threading
import time

import pytest

from conversations.display.rendering.formulas import LENGTH_MOST
from conversations.display.rendering.markdown import render

DRAWN = r"""
x^2+y^2=z^2
\frac{-b\pm\sqrt{b^2-4ac}}{2a}
\sum_{i=1}^{n} i = \frac{n(n+1)}{2}
\int_{-\infty}^{\infty} e^{-x^2}\,dx = \sqrt{\pi}
e^{i\pi}+1=0
\lim_{x\to 0}\frac{\sin x}{x}=1
\prod_{k=1}^{n} k = n!
\binom{n}{k}=\frac{n!}{k!(n-k)!}
A=\begin{pmatrix}a&b\\c&d\end{pmatrix}
\begin{bmatrix}1&0\\0&1\end{bmatrix}
\begin{vmatrix}a&b\\c&d\end{vmatrix}=ad-bc
f(x)=\begin{cases}x^2&x\ge 0\\-x&\text{otherwise}\end{cases}
\begin{aligned}(a+b)^2&=a^2+2ab+b^2\\&\ge 0\end{aligned}
\nabla\times\vec{E}=-\frac{\partial\vec{B}}{\partial t}
\nabla\cdot\mathbf{D}=\rho
\hat{H}\psi=E\psi
\langle\phi|\psi\rangle
\mathbb{R}\subset\mathbb{C}
\mathcal{L}\{f\}(s)
\mathfrak{g}
\forall\epsilon>0\;\exists\delta>0
A\cup B\cap C\setminus D
x\in A\Rightarrow x\notin B
p\land q\lor\lnot r
\alpha\beta\gamma\delta\epsilon\zeta\eta\theta
\Gamma\Delta\Theta\Lambda\Xi\Pi\Sigma\Phi\Psi\Omega
\overline{z}=a-bi
\underbrace{1+1+\dots+1}_{n}
\overbrace{a+b}^{\text{sum}}
\sqrt[3]{x}
\left(\frac{1}{1+\frac{1}{x}}\right)^{2}
\left\lfloor x\right\rfloor\le\left\lceil x\right\rceil
\left|\frac{a}{b}\right|
\|v\|_2
a\equiv b\pmod{n}
\gcd(a,b)\cdot\operatorname{lcm}(a,b)=ab
\log_2 n\quad\ln x\quad\sin^2\theta
\oint_C \vec{F}\cdot d\vec{r}
\iint_D f\,dA
x_{n+1}=x_n-\frac{f(x_n)}{f'(x_n)}
\dot{x}+\ddot{x}=0
\tilde{x}\bar{y}\acute{z}
\mathrm{Var}(X)=E[X^2]-E[X]^2
P(A\mid B)=\frac{P(B\mid A)P(A)}{P(B)}
\frac{1}{\sigma\sqrt{2\pi}}e^{-\frac{(x-\mu)^2}{2\sigma^2}}
A\xrightarrow{f}B
A\to B\mapsto C\iff D
\boxed{E=mc^2}
\cancel{x}
\begin{array}{c|c}a&b\\\hline c&d\end{array}
\begin{align}a&=b\\c&=d\end{align}
\text{if }x\text{ then }y
10\,\%\quad\$5
\aleph_0\infty\emptyset
a\ne b\approx c\sim d\propto e
\ldots\cdots\vdots\ddots
{}^{14}_{6}\mathrm{C}
\color{red}{x}+y
\phantom{x}y
A = \pi r^2 (1+\tfrac{r}{100})^{\dfrac{a}{b}}
""".strip().split("\n")

REFUSED = [
    r"\href{javascript:alert(1)}{x}", r"\url{https://evil.example}", r"\includegraphics{https://evil.example/a.png}",
    r"\class{x}{y}", r"\style{color:red}{x}", r"\html{<b>}", r"\unknown{x}", r"\frac{1}{", r"\begin{foo}x\end{foo}",
    r"\input{/etc/passwd}", r"\def\a{\a\a}\a", r"\require{html}",
]  # fmt: skip


def tags(html: str) -> set[str]:
    return set(re.findall(r"<([a-z0-9-]+)", html))


@pytest.mark.parametrize("latex", DRAWN)
def test_a_formula_is_mathml(latex: str) -> None:
    """Sixty of them, without inline styles, which the policy of the pages would ignore, and with their source."""
    html = render(f"$$\n{latex}\n$$")
    assert '<math alttext="' in html
    assert 'display="block"' in html
    assert " style=" not in html
    assert not tags(html) & {"annotation", "annotation-xml", "maction", "semantics", "script", "a", "code"}


@pytest.mark.parametrize("latex", REFUSED)
def test_what_cannot_be_drawn_is_shown_as_its_source(latex: str) -> None:
    html = render(f"before ${latex}$ after")
    assert tags(html) == {"p", "code"}
    assert '<code class="formula" title="This formula cannot be shown: ' in html
    assert re.sub(r"<[^>]*>", "", html).replace("&lt;", "<").replace("&gt;", ">").strip() == f"before {latex} after"


@pytest.mark.parametrize(
    "text",
    ["It costs $5 and $6.", "$5/$6", "from $HOME to $PATH", "a $ b $ c", r"\$x\$", "`$x$`", "$$", "$ $", r"\\(x\\)",
     "```\n$$\nx\n$$\n```", "    $x$"],
)  # fmt: skip
def test_dollars_are_no_formula(text: str) -> None:
    assert "<math" not in render(text)


@pytest.mark.parametrize(
    "text", ["$x$", r"\(x\)", r"\[x\]", "$$x$$", "$$\nx\n$$", "\\[\n- x\n= y\n\\]", "a\n$$\nx\n$$\nb", "- $$x$$"]
)
def test_each_way_to_write_a_formula(text: str) -> None:
    html = render(text)
    assert html.count("<math") == 1
    assert ("display" in html) == (text not in ("$x$", r"\(x\)"))


def test_colours_are_left_out() -> None:
    """Blue on black could not be read; the formula can."""
    html = render(r"$\textcolor{blue}{x}$")
    assert "0000FF" not in html
    assert "<mi>x</mi>" in html


@pytest.mark.parametrize(
    "unit",
    ["{", "}", "^", "_", "^{x", r"\frac{", r"\left(", r"\sqrt ", "'", "&", r"\\", r"\begin{matrix}", "x", "%", "#"],
)
def test_a_nested_formula_ends_in_time(unit: str) -> None:
    """Also in a thread, whose stack may be small: math-core's own is not endless."""
    most = (unit * LENGTH_MOST)[:LENGTH_MOST]
    longer = unit * 200_000
    drawn: list[str] = []
    began = time.process_time()
    thread = threading.Thread(target=lambda: drawn.extend([render(f"$a{most}$"), render(f"$${longer}$$")]))
    thread.start()
    thread.join()
    assert len(drawn) == 2
    assert time.process_time() - began < 5  # seconds


def test_macros_do_not_multiply() -> None:
    bomb = r"\newcommand{\a}{xxxxxxxxxx}" + "".join(
        rf"\newcommand{{\{b}}}{{{(chr(92) + a) * 10}}}" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    html = render(f"${bomb}\\i$")
    assert len(html) < 100_000
