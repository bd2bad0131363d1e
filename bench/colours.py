"""What colouring code takes at most, by language: whatever takes a lexer longest, in as much code as is coloured.

Each language in a process of its own, which is ended if it takes longer than anything should: one that is listed there
must not be among conversations.display.rendering.code.LANGUAGES. Milliseconds of CPU.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from multiprocessing.connection import Connection

from conversations.display.rendering import code

SECONDS_MOST = 10.0
UNITS = [
    *"([{<\"'`\\/#-=a1$@%&;:\t A|~^!?é*+",
    *("//", "/*", "(*", "##", "--", "a ", "1.", "${", "a:", "a=", "<a", "<a ", "<!--", "<?", "{{", "{%", "a.", "a,"),
    *('"""', "'''", "r'", 'f"{', "(a", "a(", "if ", "- ", "0x", "a<", "<a>", "a-", "a_", "A ", "a\\", '\\"', "/a"),
    *("=a ", "a =", "[a]", "[[", "]]", "}}", "{a", "**", "*a", "> ", "\\n"),
]


def main() -> None:
    """Try every language, and list the slowest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("languages", nargs="*", help="Pygments' names; without any, those that have colours")
    asked = parser.parse_args().languages
    worst = sorted(((_worst(each), each) for each in asked or code.LANGUAGES), reverse=True)
    for (seconds, unit), language in worst[:20]:
        took = "ended" if seconds == SECONDS_MOST else f"{seconds * 1000:,.0f} ms"
        print(f"{language:20} {took:>10}  {unit!r}")


def _worst(language: str) -> tuple[float, str]:
    """Return how long this language takes at most, and for what."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_try, args=(language, there), daemon=True)
    process.start()
    there.close()
    worst, unit, patience = (0.0, ""), "", 60.0  # it starts for some seconds
    while here.poll(patience):
        try:
            unit, seconds = here.recv()
        except EOFError:
            return worst
        worst, patience = max(worst, (seconds, unit)), SECONDS_MOST
    process.kill()
    return SECONDS_MOST, unit


def _try(language: str, told: Connection) -> None:
    code.LANGUAGES.add(language)
    for unit in UNITS:
        for line in (unit, (unit * code.LINE_MOST)[: code.LINE_MOST - 1]):
            told.send((unit, 0.0))
            began = time.thread_time()
            code.highlight(f"{line}\n" * (code.COLOURED_MOST // (len(line) + 1)), language)
            told.send((unit, time.thread_time() - began))


if __name__ == "__main__":
    main()
