"""The web processes of one host: they share a socket that their parent opened, and never closes while it runs.

A connection waits in that socket until a process takes it. So while one of them is dead, or all are restarted,
nobody is refused; what is lost with a process are the connections that it had. (Sockets of their own on one port,
with SO_REUSEPORT, would lose those that wait for the dead one, too.)
"""

import errno
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from agentsite.env import ROOT
from agentsite.errors import CannotStart
from conversations.worker.children import Child, Family

BACKLOG = 1024
"""How many connections may wait for a web process to take them, e.g. while the only one is started again."""
Wait = Callable[[Child, Callable[[], bool]], None]
"""Waits until a child is ready. Raises CannotStart if it cannot become so."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on HOST:PORT. Raises CannotStart if it cannot be opened."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # also right after another has stopped
        listener.bind((host.strip("[]"), port))
        listener.listen(BACKLOG)  # binding alone succeeds beside another socket that allows reuse
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotStart(
                f"Port {port} is in use: stop the program that uses it, or set PORT to a free one."
            ) from None
        raise CannotStart(f"{host}:{port} cannot be opened ({error.strerror}): correct HOST and PORT.") from None
    listener.setblocking(False)  # for all that share it: another process may be faster
    return listener


def start_webs(
    family: Family, listener: socket.socket, number: int, variables: Mapping[str, str], wait: Wait
) -> list[Child]:
    """Start this number of web processes, and wait until each of them takes connections. Raises what `wait` raises."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(each) for each in range(1, number + 1)]
        webs = [
            family.add(_web(f"web server {file.name}" if number > 1 else "web server", listener, variables, file))
            for file in files
        ]
        for web, file in zip(webs, files, strict=True):
            wait(web, file.exists)
    for web in webs:
        web.command = _command(listener)  # the folder is gone
    return webs


def _web(name: str, listener: socket.socket, variables: Mapping[str, str], file: Path) -> Child:
    command = [*_command(listener), "--ready-file", str(file)]
    return Child(name, command, ROOT, variables, [listener.fileno()])


def _command(listener: socket.socket) -> list[str]:
    return [sys.executable, "-m", "agentsite.web", "--socket", str(listener.fileno())]
