"""What a boxed command can reach: its folder, and the machine's programs."""

import ctypes
import os
import signal
import socket
from pathlib import Path

import pytest

from agents.plugins.shell import probe, sandbox, tree
from agents.plugins.shell.tools import run
from agents.plugins.shell.user import USER
from tests.plugins.calls import SECRET, Desk, idle, parent_of, running, soon, start_worker, until

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("boxed")
class TestBoxed:
    async def test_of_the_machine_it_sees_its_programs_and_no_data(self, desk: Desk) -> None:
        result = await desk.call(run, command="ls -A /; ls -A /etc /workspace")
        seen = set(result["stdout"].split())
        assert seen <= {
            *("bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "tmp", "usr", "workspace"),
            *("/etc:", "/workspace:", "alternatives", "ld.so.cache", "localtime"),
        }
        secrets = [desk.outside / "secret.key", ROOT, Path.home(), Path("/etc/passwd"), Path("/var"), Path("/run")]
        for path in secrets:
            assert (await desk.call(run, command=f"ls {path}"))["exit"] != 0

    async def test_a_link_it_makes_leads_nowhere(self, desk: Desk) -> None:
        result = await desk.call(
            run, command=f"ln -s {desk.outside}/secret.key here; cat here; ln {desk.outside}/secret.key x"
        )
        assert result["exit"] != 0
        assert SECRET not in result["stdout"]

    async def test_it_can_write_to_its_folder_and_to_memory_only(self, desk: Desk) -> None:
        for folder in ("/", "/usr", "/etc", "/dev", "/proc/sys/kernel", "/usr/local/bin"):
            result = await desk.call(run, command=f"echo > {folder}/written")
            assert result["exit"] != 0, folder
        for folder in ("/workspace", "/tmp", "/dev/shm"):
            assert (await desk.call(run, command=f"echo > {folder}/written"))["exit"] == 0, folder

    async def test_what_it_writes_to_memory_is_bounded(self, desk: Desk) -> None:
        for folder in ("/tmp", "/dev/shm"):
            result = await desk.call(run, command=f"head -c 300M /dev/zero > {folder}/big")
            assert "No space left" in result["stderr"]

    async def test_its_tmp_is_its_own(self, desk: Desk) -> None:
        await desk.call(run, command="echo > /tmp/first")
        assert (await desk.call(run, command="ls -A /tmp"))["stdout"] == ""

    async def test_it_has_no_network(self, desk: Desk) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            result = await desk.call(run, command=f"exec 3<> /dev/tcp/127.0.0.1/{port}")
            assert result["exit"] != 0
        assert (await desk.call(run, command="grep -c : /proc/net/dev"))["stdout"] == "1\n"  # its own loopback

    async def test_it_sees_and_signals_nobody_elses_process(self, desk: Desk, mark: str) -> None:
        other = start_worker(desk, "unboxed", idle(mark))
        try:
            await soon(lambda: running(f"done\0{mark}"))
            result = await desk.call(run, command=f"cat /proc/[0-9]*/cmdline; kill -9 {other.pid}; kill -9 -1; true")
            assert mark not in result["stdout"]
            assert other.poll() is None
            assert running(mark)
        finally:
            other.kill()
            other.wait()
            await soon(lambda: not running(f"done\0{mark}"))

    async def test_it_has_no_capability_and_no_way_to_one(self, desk: Desk) -> None:
        result = await desk.call(run, command="id -u; grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status")
        uid, *lines = result["stdout"].splitlines()
        assert uid != "0"
        assert [line.split()[1].strip("0") for line in lines] == ["", "", "", "1"]
        assert (await desk.call(run, command="unshare --user true"))["exit"] != 0

    async def test_it_is_not_told_where_its_folder_is(self, desk: Desk) -> None:
        result = await desk.call(run, command="cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; env; ls -l /proc/1/cwd")
        assert str(desk.workspace) not in result["stdout"]

    async def test_it_does_not_have_the_keys_of_the_worker(self, desk: Desk) -> None:
        """The number of its session keyring is not that of the worker's, which this process is here."""
        number = tree.KEYCTL
        kept = ctypes.CDLL(None).syscall(number, 1, b"of-the-worker")  # a keyring with this name
        if kept < 0:
            pytest.skip("this machine lets nobody have keyrings")
        own = f"python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall({number}, 0, -3, 0))'"
        its = int((await desk.call(run, command=own))["stdout"])
        assert its > 0
        assert its != kept

    async def test_what_it_writes_belongs_to_the_worker(self, desk: Desk) -> None:
        """To a root worker's user of commands: see tests/attacks/test_root.py."""
        await desk.call(run, command="mkdir made && echo hello > made/file")
        assert (desk.workspace / "made" / "file").stat().st_uid == (os.getuid() or USER)

    def test_a_killed_supervisor_takes_the_box_with_it(self, desk: Desk, mark: str) -> None:
        worker = start_worker(desk, "boxed", f"setsid {idle(mark)} & {idle(mark)}")
        until(lambda: len(running(f"done\0{mark}")) >= 2, 20)
        (supervisor,) = (pid for pid in running("agents.plugins.shell.supervise") if parent_of(pid) == worker.pid)
        os.kill(supervisor, signal.SIGKILL)
        assert worker.wait() == 1  # the call's error
        until(lambda: not running(mark))


@pytest.mark.parametrize("program", ["exit 1", "exit 0"])
def test_a_bubblewrap_that_does_nothing_is_no_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not probe.Probe(tmp_path, 65530).sandbox()


def test_without_bubblewrap_there_is_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not probe.Probe(tmp_path, 65530).sandbox()


@pytest.mark.parametrize(("path", "shown"), [("/usr/local/agentsite", True), ("/bin", True), ("/srv/usr", False)])
def test_it_knows_what_a_command_can_read(path: str, shown: bool) -> None:
    assert sandbox.exposes(Path(path)) is shown
