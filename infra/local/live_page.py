"""A world on this machine is shown live: by the page of `dovetail watch`, and lines of `top`."""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from functions.cli.watch.page_files import is_built

NOT_BUILT: Final = "`dovetail watch`, or `make page`, once builds a page that shows this live"
_LOOK_SECONDS: Final = 0.2
# The log of the lines also has what the command says when it fails, which is for the log alone.
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d ")


class _LiveCommand(ABC):
    """A command of the product beside the world, and a thread that says what it shows.

    Args:
        children: Start it and end it.
        say: Told each line.
    """

    name: str

    def __init__(self, children: Any, say: Callable[[str], None]) -> None:
        self._children = children
        self._say = say
        self._ended = threading.Event()

    def _begin(self, words: Sequence[str], environment: dict[str, str]) -> None:
        """Start it beside the world; nothing waits for it."""
        command = ["-m", "functions.cli", *words]
        self._children.begin(self.name, command, environment=environment)
        threading.Thread(target=self._follow, name=self.name, daemon=True).start()

    def stop(self) -> None:
        """Say nothing more, and end the process: it only reads, so it is not asked."""
        self._ended.set()
        if self._children.alive(self.name):
            self._children.stop(self.name, hard=True)

    @abstractmethod
    def _follow(self) -> None: ...


class LivePage(_LiveCommand):
    """The page; its address is written to a file of the folder and said."""

    name = "watch"

    def __init__(self, children: Any, folder: Path, say: Callable[[str], None]) -> None:
        super().__init__(children, say)
        self._address = folder / "page"

    def start(self, kubeconfig: Path, cluster: str, environment: dict[str, str]) -> None:
        """Start it beside the world, or say how it is built."""
        if not is_built():
            self._say(NOT_BUILT)
            return
        words = ["watch", "--kubeconfig", str(kubeconfig), "--cluster", cluster]
        self._begin([*words, "--address-file", str(self._address)], environment)

    def _follow(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS) and self._children.alive(self.name):
            if self._address.is_file():
                address = self._address.read_text(encoding="utf-8").strip()
                self._say(f"the page that shows this live: {address}")
                return


class DecisionLines(_LiveCommand):
    """The lines of what Dovetail decides, read from the log of the command."""

    name = "decisions"

    def __init__(self, children: Any, log: Path, say: Callable[[str], None]) -> None:
        super().__init__(children, say)
        self._log = log

    def start(self, kubeconfig: Path, cluster: str, environment: dict[str, str]) -> None:
        words = ["top", "--lines", "--kubeconfig", str(kubeconfig), "--cluster", cluster]
        self._begin(words, environment)

    def _follow(self) -> None:
        with self._log.open(encoding="utf-8") as lines:
            rest = ""
            while not self._ended.wait(_LOOK_SECONDS):
                *whole, rest = (rest + lines.read()).split("\n")
                for line in whole:
                    if _TIME.match(line):
                        self._say(line)
