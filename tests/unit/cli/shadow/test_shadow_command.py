"""`dovetail shadow`: what it says as it goes, and the report at its end."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from functions.cli.catalog_runtime import MadeCatalog
from functions.cli.shadow.shadow_command import mount_shadow
from shared.instance_types.catalog import embedded_text
from shared.model.errors import UnauthorizedError
from tests import builders as make
from tests.fakes.clock import FakeClock
from tests.unit.cli.running import run_mounted
from tests.unit.cli.shadow.observed import ObservedCluster
from tests.unit.cli.shadow.week import owner

NODES = [make.node_of(name, created_at=make.NOW - timedelta(hours=1)) for name in ("a", "b")]


class Scene(FakeClock):
    """A cluster, and what happens in it while the command waits: first it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = ObservedCluster(owner())
        self.first: Callable[[], None] = lambda: self.cluster.has(
            NODES, [make.pod("one", node_name="a", cpu=1500)]
        )
        self.then: Callable[[], None] = lambda: None

    def sleep(self, span: timedelta) -> None:
        (self.then if self.cluster.watches[0].has_synced else self.first)()
        super().sleep(span)

    def run(self, *words: str) -> int:
        self.cluster.watches.clear()
        return run_mounted(
            lambda commands: mount_shadow(
                commands,
                lambda _file, _context: self.cluster,
                lambda name: MadeCatalog(text=embedded_text(), region=name, deployed=False),
                self,
            ),
            "shadow",
            *words,
        )


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.chdir(tmp_path)
    return Scene()


def test_a_line_for_each_decision_and_a_report_at_the_end(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scene.run("--for", "5m", "--set", "max_node_vcpus=8") == 0
    said, notes = capsys.readouterr()
    assert said.splitlines()[0] == (
        "2026-01-01 00:00:00 would remove 1 node: 1 × m5.large on-demand; $0.0960/h; "
        "consolidation: saves $0.0960/h. $0.0960/h beside $0.1920/h that really run"
    )
    assert "observed for 5 min since 2026-01-01 00:00 UTC\n" in said
    assert said.endswith("written to dovetail-shadow.html\n")
    assert notes.startswith("note: The prices are those that ship with Dovetail")
    page = Path("dovetail-shadow.html").read_text(encoding="utf-8")
    assert "Settings: max_node_vcpus=8." in page
    assert "<li>The prices are those that ship with Dovetail" in page


def test_it_goes_on_until_it_is_stopped_and_continues_later(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    scene.then = stop
    assert scene.run("--quiet", "--live-prices") == 0
    said, notes = capsys.readouterr()
    assert said.startswith("observed for 0 min")
    assert notes == "dovetail shadow: stopped: the same command continues the record\n"
    scene.advance(timedelta(hours=1))
    scene.then = lambda: None
    came = make.node_of("c", created_at=scene.now() - timedelta(minutes=9))
    scene.first = lambda: scene.cluster.has([NODES[0], came], [])
    assert scene.run("--quiet", "--for", "2m", "--output", "a.json") == 0
    assert capsys.readouterr().err.startswith(
        "dovetail shadow: continues the record begun 2026-01-01 00:00 UTC, of 1 observation; "
        "since 2026-01-01 00:00 UTC it was stopped: 1.0 h that count on neither side, in which "
        "1 node came and 1 went\n"
    )
    (gap,) = json.loads(Path("a.json").read_text(encoding="utf-8"))["gaps"]
    assert gap["ended_at"] == "2026-01-01T01:00:00.500000Z"


def test_a_record_that_is_continued_at_once_misses_nothing(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scene.run("--quiet", "--for", "1m") == 0
    capsys.readouterr()
    scene.advance(timedelta(seconds=30))
    assert scene.run("--quiet", "--for", "1m") == 0
    assert capsys.readouterr().err.startswith(
        "dovetail shadow: continues the record begun 2026-01-01 00:00 UTC, of 7 observations; "
        "nothing is missed\n"
    )


def test_the_report_is_written_without_a_cluster(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scene.run("report") == 2
    assert capsys.readouterr().err == (
        "dovetail shadow: dovetail-shadow.db: there is no such file: name a record of dovetail "
        "shadow\n"
    )
    scene.run("--for", "1m", "--state", "b.db")
    scene.cluster.failure = UnauthorizedError("forbidden")
    assert scene.run("report", "--state", "b.db", "--output", "b.json") == 0
    found = json.loads(Path("b.json").read_text(encoding="utf-8"))
    assert found["about"]["cluster"] == "https://test"
    assert found["total"]["shadow"]["micros"] < found["total"]["real"]["micros"]


def test_while_the_cluster_is_not_known_nothing_is_recorded(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    def unserved() -> None:
        scene.advance(timedelta(minutes=11))

    scene.then = unserved
    assert scene.run("--for", "30m") == 0
    assert "observed for 0 min" in capsys.readouterr().out


def test_a_discount_holds_for_both_sides_and_is_noted(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scene.run("--for", "5m", "--discount", "0.5") == 0
    said = capsys.readouterr().out
    assert "$0.0480/h. $0.0480/h beside $0.0960/h that really run" in said
    assert "On-demand prices are 0.5 of the list prices, as --discount says" in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--for", "week"), "week: give a number with m, h or d, such as 7d"),
        (("--for", "7d", "--output", "none/a.html"), "--output none/a.html: cannot be written"),
        (("--set", "nothing=1"), "nothing"),
        (("--catalog", "missing.json"), "missing.json"),
    ],
)
def test_bad_input_is_one_line(
    scene: Scene, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    try:
        code = scene.run(*words)
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert expected in capsys.readouterr().err


def test_a_pool_that_the_cluster_does_not_have_is_refused_at_once(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scene.run("--pool", "defualt", "--for", "7d") == 2
    assert capsys.readouterr().err == (
        "dovetail shadow: --pool defualt: write default; the cluster has no such pool; there are: "
        "Provisioner default (node groups show once they have a node)\n"
    )
    # One that is declared needs no node; what is not known is not refused.
    scene.cluster = ObservedCluster(owner(), make.provisioner("other"))
    assert scene.run("--pool", "other", "--for", "1m") == 0
    scene.cluster.failure = UnauthorizedError("forbidden")
    assert scene.run("--pool", "unread", "--for", "1m", "--state", "b.db") == 0


def test_a_cluster_that_has_no_node_or_cannot_be_read_is_refused(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.first = lambda: scene.cluster.has([], [])
    assert scene.run() == 2
    assert capsys.readouterr().err == (
        "dovetail shadow: the cluster has no node: start once it has some\n"
    )
    scene.first = lambda: None
    assert scene.run() == 2
    assert "nodes and pods were not read within 60 seconds" in capsys.readouterr().err
