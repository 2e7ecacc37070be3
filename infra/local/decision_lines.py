"""What Dovetail decides in a world on this machine: the lines of `dovetail top --lines`, said."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from infra.local.live_page import Children

_CHILD: Final = "decisions"
_LOOK_SECONDS: Final = 0.3
# Its log also has what the command says when it fails, which is for the log alone.
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d ")


class DecisionLines:
    """The command's process, and a thread that says its lines."""

    def __init__(self, children: Children, log: Path, say: Callable[[str], None]) -> None:
        self._children = children
        self._log = log
        self._say = say
        self._ended = threading.Event()

    def start(self, kubeconfig: Path, cluster: str, environment: dict[str, str]) -> None:
        """Start it beside the world; nothing waits for it."""
        words = ["top", "--lines", "--kubeconfig", str(kubeconfig), "--cluster", cluster]
        self._children.begin(_CHILD, ["-m", "functions.cli", *words], environment=environment)
        threading.Thread(target=self._follow, name=_CHILD, daemon=True).start()

    def stop(self) -> None:
        """Say nothing more, and end the process: it only reads, so it is not asked."""
        self._ended.set()
        if self._children.alive(_CHILD):
            self._children.stop(_CHILD, hard=True)

    def _follow(self) -> None:
        with self._log.open(encoding="utf-8") as lines:
            rest = ""
            while not self._ended.wait(_LOOK_SECONDS):
                *whole, rest = (rest + lines.read()).split("\n")
                for line in whole:
                    if _TIME.match(line):
                        self._say(line)
