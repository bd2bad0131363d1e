from ipaddress import ip_network
from pathlib import Path

import pytest

from agentsite.env import ROOT, Environment, environment
from agentsite.errors import CannotStart


def read(**values: str) -> Environment:
    return Environment(values)


def test_it_takes_a_blank_value_as_not_set() -> None:
    env = read(A="  ", B="")
    assert env.text("A", "x") == "x"
    assert env.flag("B", default=True)
    assert env.whole("C", 7) == 7


def test_it_reads_what_values_stand_for() -> None:
    env = read(YES="On", NO="false", WHOLE="12", PART="0.3", MANY=" a, b ,,c", URL="http://h:1/v1")
    assert env.flag("YES")
    assert not env.flag("NO", default=True)
    assert env.whole("WHOLE", 1) == 12
    assert env.number("PART", 1) == 0.3
    assert env.items("MANY") == ["a", "b", "c"]
    assert env.url("URL", ("https", "http")) == "http://h:1/v1"


def test_it_reads_some_of_a_few_words() -> None:
    assert read().some_of("NONE", ("a", "b")) == []
    assert read(A="b, a").some_of("A", ("a", "b", "c")) == ["b", "a"]
    with pytest.raises(CannotStart, match="A has 'hihg': write some of high, write, separated by commas"):
        read(A="write,hihg").some_of("A", ("high", "write"))


def test_it_reads_pairs() -> None:
    """A value may have an equals sign; the names of models have slashes and colons."""
    assert read().pairs("NONE") == {}
    assert read(A="fast = org/a:1 ,, b=c=d").pairs("A") == {"fast": "org/a:1", "b": "c=d"}
    for wrong in ("fast", "=a", "a=", "a=b, c"):
        with pytest.raises(CannotStart, match="write pairs like name=value"):
            read(A=wrong).pairs("A")
    with pytest.raises(CannotStart, match="write each name once"):
        read(A="a=b, a=c").pairs("A")


@pytest.mark.parametrize("value", ["maybe", "2", "ja"])
def test_it_refuses_a_flag_that_is_neither(value: str) -> None:
    with pytest.raises(CannotStart, match=r"DEBUG is .* write 1 for yes or 0 for no"):
        read(DEBUG=value).flag("DEBUG")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("many", "write a number"),
        ("0", "from 1 to 65535"),
        ("70000", "from 1 to 65535"),
        ("1.5", "whole"),
        ("nan", "from"),
    ],
)
def test_it_refuses_a_number_that_makes_no_sense(value: str, says: str) -> None:
    with pytest.raises(CannotStart, match=f"PORT is {value!r}.*{says}"):
        read(PORT=value).whole("PORT", 8000, least=1, most=65535)


def test_it_refuses_an_infinite_whole_number() -> None:
    with pytest.raises(CannotStart, match="whole number"):
        read(ROUNDS="inf").whole("ROUNDS", 10)


def test_it_refuses_a_choice_that_is_none() -> None:
    with pytest.raises(CannotStart, match="write one of responses, chat"):
        read(API="soap").choice("API", "responses", ("responses", "chat"))


@pytest.mark.parametrize(
    "value", ["localhost:11434", "ftp://h/secret", "http:///secret", "http://[::1", "http://h:secret/"]
)
def test_it_refuses_an_address_without_repeating_it(value: str) -> None:
    with pytest.raises(CannotStart, match="URL is not a valid URL") as caught:
        read(URL=value).url("URL", ("http",))
    assert value not in str(caught.value)


def test_it_puts_a_relative_path_below_the_project() -> None:
    assert read(P="some/where").path("P", Path("x")) == ROOT / "some/where"
    assert read(P="/abs").path("P", Path("x")) == Path("/abs")


def test_it_reads_the_file_below_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings"
    file.write_text("# remark\n\nexport ONE = 'a b'\nTWO=\"2\"\nTHREE=x=y # z\n")
    monkeypatch.setenv("AGENTSITE_ENV_FILE", str(file))
    monkeypatch.setenv("TWO", "of the process")
    monkeypatch.setenv("ONE", "")
    env = environment()
    assert env.text("ONE") == "a b"
    assert env.text("TWO") == "of the process"
    assert env.text("THREE") == "x=y # z"


@pytest.mark.parametrize("line", ["just words", "=value", "A-B=1"])
def test_it_names_the_line_of_the_file_that_is_no_setting(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings"
    file.write_text(f"A=1\n{line}\n")
    monkeypatch.setenv("AGENTSITE_ENV_FILE", str(file))
    with pytest.raises(CannotStart, match="line 2 is not a setting"):
        environment()


def test_it_reads_networks() -> None:
    assert read(N="10.1.0.0/16, fd00::/8").networks("N") == [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]
    assert read().networks("N") == []
    for wrong in ("10.1.0.1/16", "example.org", "10.0.0.0/40"):
        with pytest.raises(CannotStart, match="Write networks like"):
            read(N=wrong).networks("N")
