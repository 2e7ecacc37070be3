"""A cluster as messages: what is read is told once, and what cannot be read is said."""

from datetime import timedelta

import pytest

from functions.cli.watch.cluster_watch import WatchedPod
from functions.cli.watch.live import FOREVER, RECORDS_EVERY, LiveCluster
from functions.cli.watch.top_options import node_selector
from shared.model.errors import NotInstalledError, UnavailableError
from tests.builders import CATALOG, node, pod, pods, provisioner
from tests.unit.cli.watch.running import AtOnce, Scene, WatchedCluster, WorldRecords
from tests.unit.nodes.launch.launches import apart, open_intent, two_nodes
from tests.unit.worlds import MINUTE, World, failing


def test_nothing_is_told_before_nodes_and_pods_are_read() -> None:
    scene = Scene()
    scene.see(node())
    assert scene.turn() is None
    assert scene.live.whole()["synced"] is False
    scene.cluster.synced()
    told = scene.turn()
    assert told["kind"] == "change"
    assert [view["name"] for view in told["nodes"]] == ["n1"]
    assert told["point"][1:] == (96_000, 96_000, None, 1)


def test_what_was_told_is_not_told_again() -> None:
    scene = Scene()
    scene.see(node(), pod("a", node_name="n1"))
    scene.cluster.synced()
    scene.turn()
    scene.turn()
    assert scene.turn() is None
    scene.pods.changed(WatchedPod(pod("a", node_name="n1"), ""), None)
    assert scene.turn()["totals"]["pods"] == 0


def test_the_whole_has_what_all_changes_had() -> None:
    scene = Scene()
    scene.see(node(), pod("a"))
    scene.cluster.synced()
    change = scene.turn()
    whole = scene.live.whole()
    assert whole["nodes"] == change["nodes"]
    assert whole["waiting"] == change["waiting"]
    assert whole["history"] == (change["point"],)
    assert whole["cluster"] == "cluster"


def test_a_provisioner_that_was_changed_is_read_again() -> None:
    scene = Scene()
    scene.cluster.failure = NotInstalledError("not defined")
    scene.owners.changed()
    scene.cluster.failure = None
    scene.owners.changed()
    scene.see(node(ready=None))
    scene.cluster.synced()
    assert scene.turn()["nodes"][0]["owner"] == "default"


def test_without_aws_the_cluster_is_shown_and_a_note_says_what_is_missing() -> None:
    scene = Scene()
    scene.cluster.synced()
    assert scene.live._read_records() == 30.0
    told = scene.turn()
    [note] = told["notes"]
    assert note.startswith("Decisions and launches are not shown: attached clusters: none")
    assert scene.live.decision("plan-1") is None
    assert scene.live.document("plan-1") is None


def test_records_are_read_less_often_while_no_pod_waits() -> None:
    world = World(provisioner())
    scene = Scene(WorldRecords(world))
    scene.read()
    lists = len(world.decisions.calls)
    scene.clock.advance(RECORDS_EVERY)
    scene.read()
    assert len(world.decisions.calls) == lists
    scene.see(pod("a"))
    scene.read()
    assert len(world.decisions.calls) > lists


def test_coming_nodes_are_shown_with_what_is_bound_to_them() -> None:
    world = two_nodes()
    world.provision()
    scene = Scene(WorldRecords(world))
    scene.see(*world.cluster.bound_pods(), *world.cluster.nodes())
    scene.cluster.synced()
    scene.read()
    told = scene.turn()
    assert {view["phase"] for view in told["nodes"]} == {"launched"}
    assert {view["plan"] for view in told["nodes"]} == {"plan-1"}
    assert [view["pods"][0]["count"] for view in told["nodes"]] == [1, 1]
    assert told["totals"]["coming"] == 2


def test_nodes_of_an_unfinished_launch_are_shown_before_ec2_has_answered() -> None:
    world = World(provisioner(), *apart(2))
    open_intent(world)
    scene = Scene(WorldRecords(world))
    scene.see(*world.cluster.pending_pods())
    scene.cluster.synced()
    scene.read()
    told = scene.turn()
    assert told["totals"]["coming"] == 2
    assert told["nodes"][0]["waits_for"].startswith("EC2's answer to CreateFleet")
    assert told["nodes"][0]["instance"] == ""


def test_a_launch_whose_body_is_lost_is_left_out() -> None:
    world = World(provisioner(), *apart(2))
    open_intent(world)
    for key in [key for key in world.decisions.documents if key.startswith("launches/")]:
        del world.decisions.documents[key]
    scene = Scene(WorldRecords(world))
    scene.cluster.synced()
    scene.read()
    scene.turn()
    assert not scene.live.whole()["nodes"]


def test_the_bound_is_proved_for_the_pods_that_there_are() -> None:
    scene = Scene()
    assert scene.prove() == 0.0
    scene.see(node(), *pods(3, node_name="n1"))
    scene.cluster.synced()
    scene.prove()
    told = scene.turn()
    assert 0 < told["least"]["bound"] <= told["least"]["planned"]
    assert told["least"]["pods"] == 3
    assert told["point"][3] == told["least"]["bound"]


def test_where_no_node_is_dovetails_there_is_no_bound() -> None:
    scene = Scene()
    scene.see(node(finalizers=()), pod("one", node_name="n1"), pod("waits", cpu=1500))
    scene.cluster.synced()
    scene.prove()
    told = scene.turn()
    assert (told.get("least"), told["point"][3]) == (None, None)
    assert scene.live.whole()["least"] is None
    scene.see(node("n2"))
    assert scene.turn()["least"]["bound"] > 0


def test_the_bound_of_unchanged_pods_is_not_proved_again() -> None:
    scene = Scene()
    scene.see(node(), *pods(3, node_name="n1"))
    scene.cluster.synced()
    scene.prove()
    kept = scene.live._bound
    scene.prove()
    assert scene.live._bound is kept


def test_without_provisioners_or_with_an_error_a_note_says_why_there_is_no_bound() -> None:
    scene = Scene()
    scene.cluster.synced()
    scene.cluster.failure = NotInstalledError("not defined")
    scene.prove()
    assert scene.turn()["notes"] == [
        "No bound is proved: the cluster has no Provisioner or NodePool to plan with."
    ]
    scene.cluster.failure = UnavailableError("no answer")
    scene.prove()
    assert scene.turn()["notes"] == ["No bound is proved: no answer"]
    scene.cluster.failure = None
    scene.prove()
    assert scene.turn()["notes"] == []


def test_it_is_complete_once_records_and_bound_are_known_or_known_to_be_missing() -> None:
    scene = Scene()
    scene.cluster.synced()
    assert not scene.live.is_complete
    scene.read()
    scene.prove()
    assert scene.live.is_complete


def test_watches_run_from_start_to_stop() -> None:
    scene = Scene()
    scene.live.start()
    assert all(watch.running for watch in scene.cluster.watches)
    scene.live.stop()
    assert not any(watch.running for watch in scene.cluster.watches)


def test_lines_need_no_thread_for_the_bound() -> None:
    scene = Scene()
    scene.live.start(proves=False)
    assert {thread.name for thread in scene.live._threads if thread.ident} == {"records"}
    scene.live.stop()
    scene = Scene()
    scene.live.start(looks_back=True)
    assert {thread.name for thread in scene.live._threads if thread.ident} >= {"bound", "day"}
    scene.live.stop()


def test_the_day_before_is_told_once_it_is_read() -> None:
    world = two_nodes()
    world.provision()
    world.advance(10 * MINUTE)
    scene = Scene(WorldRecords(world))
    scene.cluster.synced()
    assert scene.live._read_day_before() == 0.0
    scene.read()
    assert "history" not in scene.turn()
    assert scene.live._read_day_before() == FOREVER
    told = scene.turn()
    assert [point.nodes for point in told["history"][:2]] == [0, 2]
    assert told["history"][1].at < scene.live.whole()["opened"] <= told["history"][2].at
    assert "history" not in (scene.turn() or {})
    assert scene.live.whole()["history"][:2] == told["history"][:2]


def test_a_day_that_cannot_be_read_is_a_note_and_is_tried_again() -> None:
    world = two_nodes()
    scene = Scene(WorldRecords(world))
    scene.cluster.synced()
    scene.read()
    assert scene.records is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scene.records, "decisions", failing(UnavailableError("no answer")))
        assert scene.live._read_day_before() == 30.0
    assert scene.turn()["notes"] == ["The day before is not shown: no answer"]
    assert scene.live._read_day_before() == FOREVER
    assert scene.turn()["notes"] == []


def test_an_action_that_need_not_run_again_ends_its_thread() -> None:
    scene = Scene()
    runs: list[float] = []

    def action() -> float:
        runs.append(0.0)
        return FOREVER if len(runs) == 2 else 0.0

    scene.live._repeat(timedelta(), action)
    assert len(runs) == 2


def test_only_selected_nodes_are_shown_and_of_what_has_no_node_yet_nothing() -> None:
    world = World(provisioner(), *apart(2))
    open_intent(world)
    records = WorldRecords(world)
    cluster = WatchedCluster()
    live = LiveCluster(
        cluster,
        "cluster",
        lambda: records,
        CATALOG,
        AtOnce(),
        world.clock.now,
        selector=node_selector("team=data"),
    )
    cluster.synced()
    mine = node("n1", labels={**node().labels, "team": "data"})
    nodes = cluster.watches[0]
    for each in (mine, node("n2")):
        nodes.changed(None, each)
    live._read_records()
    live.next_change()
    assert [view["name"] for view in live.whole()["nodes"]] == ["n1"]
    assert live.node_labels()["n1"]["team"] == "data"
    nodes.changed(mine, node("n1"))
    live.next_change()
    assert live.whole()["nodes"] == ()


def test_a_catalogue_of_aws_takes_the_place_of_the_embedded_one() -> None:
    world = World(provisioner())
    records = WorldRecords(world)
    records.types = CATALOG[:1]
    scene = Scene(records)
    scene.see(node(labels={**node().labels, "node.kubernetes.io/instance-type": CATALOG[1].name}))
    scene.cluster.synced()
    assert scene.turn()["totals"]["unpriced"] == 0
    scene.read()
    assert scene.turn()["totals"]["unpriced"] == 1
