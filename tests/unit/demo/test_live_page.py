"""The page beside a world: it is started if it is built, and nothing waits for it."""

import threading
from pathlib import Path
from typing import Any

import pytest

from infra.local import live_page
from infra.local.live_page import NOT_BUILT, DecisionLines, LivePage


class Begun:
    """Children that write an address when they are begun."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.running = True

    def begin(self, name: str, arguments: list[str], *, environment: dict[str, str]) -> None:
        assert (name, environment) == ("watch", {"AWS_REGION": "us-east-1"})
        self.words = arguments
        Path(arguments[-1]).write_text("http://127.0.0.1:1/token/\n", encoding="utf-8")

    def alive(self, name: str) -> bool:
        return self.running and name == "watch"

    def stop(self, name: str, *, hard: bool) -> None:
        self.running = not (hard and name == "watch")


class Said:
    """Keeps what is said, and waits for it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.something = threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.something.set()


def test_the_address_is_said_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page, "is_built", lambda: True)
    children: Any = Begun()
    said = Said()
    page = LivePage(children, tmp_path, said)
    page.start(tmp_path / "kubeconfig", "demo", {"AWS_REGION": "us-east-1"})
    assert said.something.wait(10)
    page.stop()
    assert not children.running
    assert said.lines == ["the page that shows this live: http://127.0.0.1:1/token/"]
    assert children.words[2:7] == [
        *("watch", "--kubeconfig", str(tmp_path / "kubeconfig"), "--cluster", "demo"),
    ]


def test_a_page_that_is_not_built_says_how_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page, "is_built", lambda: False)
    children: Any = Begun()
    said = Said()
    LivePage(children, tmp_path, said).start(tmp_path / "kubeconfig", "demo", {})
    assert said.lines == [NOT_BUILT]
    assert not children.words


class Telling:
    """Children whose process has written something when it is begun."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.running: list[str] = []

    def begin(self, name: str, arguments: list[str], *, environment: dict[str, str]) -> None:
        assert (name, arguments[2:4]) == ("decisions", ["top", "--lines"])
        said = '{"level":"WARNING"}\n19:47:49 buys 1 node\n19:48'
        self.log.write_text(said, encoding="utf-8")
        self.running.append(name)

    def alive(self, name: str) -> bool:
        return name in self.running

    def stop(self, name: str, *, hard: bool) -> None:
        assert hard
        self.running.remove(name)


def test_lines_of_decisions_are_said_and_what_else_is_logged_is_not(tmp_path: Path) -> None:
    said, log = Said(), tmp_path / "decisions.log"
    children: Any = Telling(log)
    lines = DecisionLines(children, log, said)
    lines.start(tmp_path / "kubeconfig", "demo", {})
    assert said.something.wait(10)
    lines.stop()
    assert not children.running
    assert said.lines == ["19:47:49 buys 1 node"]
