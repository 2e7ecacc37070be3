"""What runs inside one execution environment: AWS's own runtime client, fenced in.

Started by path, with the function's code first on the module path. It leaves as soon as the
server that started it is gone (standard input ends), and it refuses the project's local
world, which is not part of what is deployed either.
"""

import os
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


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


def _leave_with_parent(descriptor: int) -> None:
    os.read(descriptor, 1)
    os._exit(1)


def main() -> None:
    """Watch the parent, then hand over to the runtime client."""
    lifeline = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    threading.Thread(target=_leave_with_parent, args=(lifeline,), daemon=True).start()
    sys.meta_path.insert(0, _NotDeployed())
    from awslambdaric.__main__ import main as serve

    serve(sys.argv)


if __name__ == "__main__":
    main()
