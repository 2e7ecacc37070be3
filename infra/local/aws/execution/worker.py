"""The processes that functions run in: a template, and the environments that it forks.

The template imports once what a runtime and the functions' packages share; each environment begins
as a copy of it, which takes a tenth of the time, and imports the code of its function itself. What
reads the environment when it is imported is left to the environments.

Started by path: the project's local world is not part of what is deployed, and is refused. Every
process leaves as soon as the server that started it is gone.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_SHARED = ("boto3", "botocore.retryhandler", "msgspec.json", "pydantic.types", "simplejson", "yaml")
_LIMIT = 1 << 18


class _NotDeployed(MetaPathFinder):
    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] == "infra":
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: infra is not deployed with the functions",
                name=fullname,
            )
        return None


def _ordered_environment(control: socket.socket) -> tuple[bytes, list[int]]:
    """Fork an environment for each order of the server; return in each, with its order.

    The server is told the process id of each, and how it ended.
    """
    ended, end = socket.socketpair()
    end.settimeout(0.0)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(end.fileno())
    while True:
        ready, _, _ = select.select([control, ended], [], [])
        if ended in ready:
            ended.recv(_LIMIT)
            _tell_ended(control)
        if control in ready:
            order, descriptors, _, _ = socket.recv_fds(control, _LIMIT, 2)
            if not order:
                os._exit(0)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for opened in (control, ended, end):
                    opened.close()
                return order, descriptors
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # The server may kill the group as soon as it knows the id.
                os.setpgid(pid, pid)
            for descriptor in descriptors:
                os.close(descriptor)
            control.send(json.dumps({"pid": pid}).encode())


def _tell_ended(control: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = found
            ended = {"pid": pid, "code": os.waitstatus_to_exitcode(status)}
            control.send(json.dumps(ended).encode())


def _leave_with_parent(descriptor: int) -> None:
    os.read(descriptor, 1)
    os._exit(1)


def _become(order: bytes, descriptors: Sequence[int]) -> None:
    """Make this process what a fresh one would be that was started for the order."""
    wanted = json.loads(order)
    lifeline, output = descriptors
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(null)
    os.close(output)
    os.environ.clear()
    os.environ.update(wanted["variables"])
    time.tzset()
    os.chdir(wanted["folder"])
    sys.path.insert(0, wanted["folder"])
    sys.argv = [__file__, wanted["handler"]]
    threading.Thread(target=_leave_with_parent, args=(lifeline,), daemon=True).start()
    sys.meta_path.insert(0, _NotDeployed())


def main() -> None:
    """Be the template; in each environment, hand over to AWS's own runtime client."""
    for name in _SHARED:
        import_module(name)
    gc.collect()
    gc.freeze()
    _become(*_ordered_environment(socket.socket(fileno=int(sys.argv[1]))))
    from awslambdaric.__main__ import main as serve

    serve(sys.argv)


if __name__ == "__main__":
    main()
