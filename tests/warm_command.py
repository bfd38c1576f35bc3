"""`rankdp` for shells, without starting Python each time: a process that has imported everything forks for each call.

A shell finds a small client in its path. The client hands its arguments, environment, directory and the three standard
files to the server, and ends as the command does.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CLIENT = """#!{python} -ISB
import os, socket, sys
words = [os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:], *map("=".join, os.environ.items())]
said = "\\0".join(words).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(said).to_bytes(8)], [0, 1, 2])
    server.sendall(said)
    sys.exit((server.recv(1) or b"\\1")[0])
"""


@contextlib.contextmanager
def warm_command(directory: Path) -> Iterator[str]:
    """The directory of a `rankdp` that needs a server, and the server."""
    address = str(directory / "server")
    client = directory / "rankdp"
    client.write_text(CLIENT.format(python=sys.executable, address=address), "utf-8")
    client.chmod(0o700)
    with subprocess.Popen(
        [sys.executable, __file__, address], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as server:
        try:
            assert server.stdout.readline() == b"ready\n"
            yield str(directory)
        finally:
            server.terminate()


def serve(address: str) -> None:
    """Fork for every client, one after the other or inside each other."""
    import rankdp
    from rankdp.cli import main

    for found in pkgutil.walk_packages(rankdp.__path__, "rankdp."):
        with contextlib.suppress(ImportError):  # an extra that is not installed
            found.name.endswith("__main__") or __import__(found.name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            client, _ = listening.accept()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if os.fork() == 0:
                listening.close()
                answer(client, main)
            client.close()


def answer(client: socket.socket, main: object) -> None:
    """Be the command that a client asks for; does not return."""
    size, files, _, _ = socket.recv_fds(client, 8, 3)
    said = b""
    while len(said) < int.from_bytes(size):
        said += client.recv(1 << 16)
    here, count, *words = said.decode().split("\0")
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(here)
    os.environ.clear()
    os.environ.update(word.partition("=")[::2] for word in words[int(count) :])
    sys.argv = ["rankdp", *words[: int(count)]]
    code = 1
    try:
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        client.sendall(bytes([code]))
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
