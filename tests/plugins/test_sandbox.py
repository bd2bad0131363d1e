"""What a boxed command can reach: its folder, and the machine's programs."""

import ctypes
import errno
import os
import signal
import socket
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from agents.plugins.shell import keys, probe, sandbox, seccomp
from agents.plugins.shell.tools import run
from agents.plugins.shell.usage import unlisted
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


@pytest.mark.parametrize(
    ("program", "why_not"),
    [("echo broken >&2; exit 1", "broken"), ("exit 0", "a command could not write to its workspace")],
)
def test_a_bubblewrap_that_does_nothing_is_no_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, why_not: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as programs:  # not below /tmp, which is covered for bubblewrap
        Path(programs).chmod(0o755)
        (Path(programs) / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
        (Path(programs) / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", programs)
        tried = probe.Probe(tmp_path, USER)
        assert (tried.sandbox(), tried.why_not) == (None, why_not)


def test_what_bubblewrap_is_told_is_no_file_of_the_command(tmp_path: Path) -> None:
    """It is open in bubblewrap when the supervisor looks: a folder that is full already would seem to have grown."""
    device = tmp_path.stat().st_dev
    _, before = unlisted([os.getpid()], device)
    with sandbox.command_line(sandbox.Sandbox(None, unmounts=True).box(tmp_path), ["true"]) as (_, inherited):
        assert len(inherited) == 2
        assert unlisted([os.getpid()], device)[1] == before


def test_without_bubblewrap_there_is_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tried = probe.Probe(tmp_path, USER)
    assert tried.sandbox() is None
    assert "not installed" in tried.why_not


def test_no_kind_of_sandbox_runs_commands_as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    users = {}
    for worker in (0, 1000):
        monkeypatch.setattr("os.geteuid", lambda number=worker: number)
        users[worker] = {kind.user for kind in sandbox.kinds(USER)}
    assert users == {0: {USER}, 1000: {None}}


def test_there_is_none_where_keys_cannot_be_kept_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: program)
    monkeypatch.setattr(seccomp, "KEYCTL", None)
    tried = probe.Probe(tmp_path, USER)
    assert tried.sandbox() is None
    assert "processor" in tried.why_not


def test_it_is_tried_where_the_workspaces_are(tmp_path: Path) -> None:
    tried = probe.Probe(tmp_path / "missing", USER)
    assert tried.sandbox() is None
    assert str(tmp_path / "missing") in tried.why_not


@pytest.mark.usefixtures("boxed")
def test_a_failure_is_tried_again_and_what_works_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not without a sandbox until the worker is started again."""
    tries: list[sandbox.Sandbox] = []

    def run_once(kind: sandbox.Sandbox, folder: Path) -> str:
        tries.append(kind)
        if len(tries) == 1:
            raise subprocess.TimeoutExpired("bwrap", 1)
        (folder / "written").touch()
        os.chown(folder / "written", kind.user or os.getuid(), -1)
        return ""

    monkeypatch.setattr(probe, "_run", run_once)
    tried = probe.Probe(tmp_path, USER)
    assert tried.sandbox() is None
    assert "busy" in tried.why_not
    assert (tried.sandbox(), len(tries)) == (None, 1)  # not at once: others would wait for it
    monkeypatch.setattr(tried, "_next", 0.0)
    assert tried.sandbox() == tries[1]
    assert (tried.why_not, tried.sandbox(), len(tries)) == ("", tries[1], 2)


@pytest.mark.usefixtures("boxed")
def test_where_mounts_cannot_be_hidden_there_still_is_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells the path of the workspace then, as docs/operating.md says."""
    monkeypatch.setattr(sandbox, "_UNMOUNT", "exit 1")
    found = probe.Probe(tmp_path, USER).sandbox()
    assert found is not None
    assert not found.unmounts


@pytest.mark.parametrize(("number", "refused"), [(errno.EDQUOT, True), (errno.EPERM, False), (errno.ENOSYS, False)])
def test_a_command_does_not_start_with_the_keyring_of_the_worker(
    monkeypatch: pytest.MonkeyPatch, number: int, refused: bool
) -> None:
    """But it does where nobody has keyrings."""

    class Kernel:
        def syscall(self, *_: object) -> int:
            ctypes.set_errno(number)
            return -1

    monkeypatch.setattr(keys, "_libc", Kernel())
    with pytest.raises(OSError, match="no keyring") if refused else nullcontext():
        keys.leave_keyring()


@pytest.mark.parametrize(("path", "shown"), [("/usr/local/agentsite", True), ("/bin", True), ("/srv/usr", False)])
def test_it_knows_what_a_command_can_read(path: str, shown: bool) -> None:
    assert sandbox.exposes(Path(path)) is shown
