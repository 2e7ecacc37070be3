"""The page of `dovetail watch` for a world on this machine, if it is built."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from functions.cli.watch.page_files import is_built

NOT_BUILT: Final = "`make page`, once, builds a page that shows this live"
_CHILD: Final = "watch"
_LOOK_SECONDS: Final = 0.2


class Children(Protocol):
    """Starts processes and ends them: `infra.local.demo.children.Children`."""

    def begin(
        self, name: str, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None: ...

    def alive(self, name: str) -> bool: ...

    def stop(self, name: str, *, hard: bool = False) -> None: ...


class LivePage:
    """The page's process; nothing waits for it."""

    def __init__(self, children: Children, folder: Path, say: Callable[[str], None]) -> None:
        self._children = children
        self._address = folder / "page"
        self._say = say
        self._ended = threading.Event()

    def start(self, kubeconfig: Path, cluster: str, environment: dict[str, str]) -> None:
        """Start it beside the world, or say how it is built."""
        if not is_built():
            self._say(NOT_BUILT)
            return
        words = ["watch", "--kubeconfig", str(kubeconfig), "--cluster", cluster]
        self._children.begin(
            _CHILD,
            ["-m", "functions.cli", *words, "--address-file", str(self._address)],
            environment=environment,
        )
        threading.Thread(target=self._await, name="page", daemon=True).start()

    def stop(self) -> None:
        """Say nothing more, and end the process: it only reads, so it is not asked."""
        self._ended.set()
        if self._children.alive(_CHILD):
            self._children.stop(_CHILD, hard=True)

    def _await(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS) and self._children.alive(_CHILD):
            if self._address.is_file():
                address = self._address.read_text(encoding="utf-8").strip()
                self._say(f"the page that shows this live: {address}")
                return
