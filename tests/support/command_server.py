"""Runs commands without starting an interpreter for each: one process imports the program, and forks for every command.

`served` starts it and writes a `semrank` for shells, which hands its arguments, its folder and its three streams over,
and ends with the exit status that it gets back. `python -m MODULE` is served alike, any other `python` starts one.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

from semrank.pipelines import cli, evaluation_plots

STREAMS = 3
MESSAGE_BYTES = 1 << 16

_SHIM = """\
#!{python} -IS
import json, os, socket, sys
program, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
if program == "python" and arguments[:1] != ["-m"]:
    os.execv({python!r}, [{python!r}, *arguments])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    message = json.dumps({{"folder": os.getcwd(), "program": program, "arguments": arguments}}).encode()
    socket.send_fds(server, [message], [0, 1, 2])
    sys.exit(int(server.recv(16) or b"70"))
"""


@contextmanager
def served(folder: Path, root: Path) -> Iterator[int]:
    """Serves the program that is in the folder `root`; writes `semrank` and `python` to `folder`, for a search path.

    Yields:
        The id of the process that serves; commands have its limits.
    """
    address = str(folder / "socket")
    environment = os.environ | {"PYTHONPATH": str(root)}
    server = subprocess.Popen([sys.executable, __file__, address], cwd=root, env=environment)
    for name in ("semrank", "python"):
        (folder / name).write_text(_SHIM.format(python=sys.executable, address=address), encoding="utf-8")
        (folder / name).chmod(0o755)
    try:
        while not Path(address).exists():
            assert server.poll() is None
            time.sleep(0.05)
        yield server.pid
    finally:
        server.kill()
        server.wait()


def serve(address: str) -> None:
    """Serves commands until the process is ended; the socket is there when it is ready."""
    for name in (*(f"semrank.pipelines.{command}" for command in cli.COMMANDS), "semrank.pipelines.runtime"):
        importlib.import_module(name)
    # Each kind of plot is drawn in `test_evaluation_plots`; all of them take longer than the crawls.
    mock.patch.multiple(evaluation_plots, PLOTS=evaluation_plots.PLOTS[:1], BY_TOPIC=()).start()
    gc.freeze()  # what all commands share is neither searched for garbage nor copied
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address + ".new")
        listener.listen()
        Path(address + ".new").rename(address)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                _command(connection)
            connection.close()
            _reap()


def _reap() -> None:
    """Takes leave of the commands that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _command(connection: socket.socket) -> None:
    """Runs a command in a process of its own."""
    message, streams, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, STREAMS)
    asked = json.loads(message)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["folder"])
    try:
        status = cli.main(asked["arguments"]) if asked["program"] == "semrank" else _module(*asked["arguments"][1:])
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        status = 70
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(str(status).encode())
    os._exit(0)


def _module(name: str, *arguments: str) -> int:
    """Runs a module as `python -m` does; gives the exit status."""
    sys.argv, sys.path[0] = [name, *arguments], str(Path.cwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
