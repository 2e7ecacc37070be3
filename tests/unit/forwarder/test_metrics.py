"""What Prometheus reads of the forwarder, and the dashboard that shows it."""

import json
import re
from datetime import datetime
from pathlib import Path

from functions.forwarder.metrics import metrics_text
from functions.forwarder.outgoing_messages import OutgoingMessages
from shared.model.errors import UnavailableError
from tests.unit.forwarder.views import HELD, T0, Cluster, at, node, pod, provisioner

FOLDER = Path(__file__).parents[3] / "infra" / "cluster" / "prometheus"


def samples(
    cluster: Cluster, outgoing: OutgoingMessages | None = None, now: datetime = T0
) -> dict[str, float]:
    quiet = OutgoingMessages("c1", lambda: 0.5)
    text = metrics_text(cluster.observer, quiet if outgoing is None else outgoing, now)
    assert text.endswith("\n")
    return {
        name: float(value)
        for name, value in (
            line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")
        )
    }


def test_nodes_are_counted_by_owner_and_state() -> None:
    cluster = Cluster()
    for view in (
        node("launched", ready=False),
        node("closed", taints=HELD),
        node("full", price="96000"),
        node("empty", price="4000"),
        node("going", deleting=True),
        node("theirs", ours=False, price="1000000"),
        pod("p", node="full", phase="Running"),
    ):
        cluster.see(view)
    found = samples(cluster)
    states = ("launched", "ready", "initialized", "empty", "terminating")
    for state in states:
        assert found[f'dovetail_nodes{{owner="default",state="{state}"}}'] == 1
    assert found['dovetail_price_dollars_per_hour{owner="default"}'] == 0.1
    assert sum(name.startswith("dovetail_nodes{") for name in found) == len(states)


def test_a_price_that_is_none_counts_nothing() -> None:
    cluster = Cluster()
    for number, price in enumerate(("-1", "1e9", "٣", "9" * 13, "x")):
        cluster.see(node(f"n{number}", price=price))
    assert samples(cluster)['dovetail_price_dollars_per_hour{owner="default"}'] == 0


def test_waiting_pods_and_held_owners_are_shown() -> None:
    cluster = Cluster()
    cluster.see(pod("a", waits=True))
    cluster.see(provisioner(annotations={"dovetail.dev/paused": "true"}))
    found = samples(cluster)
    assert found["dovetail_pods_waiting"] == 1
    assert found['dovetail_owner_held{owner="default"}'] == 1
    assert found["dovetail_forwarder_synced"] == 1
    assert samples(cluster, now=at(600))["dovetail_forwarder_synced"] == 0
    assert samples(Cluster(synced=False))["dovetail_forwarder_synced"] == 0


def test_messages_are_counted_as_they_go() -> None:
    outgoing = OutgoingMessages("c1", lambda: 0.5)
    cluster = Cluster()
    outgoing.add(cluster.observer.observe(None, pod("a", waits=True), T0), T0)
    assert samples(cluster, outgoing)["dovetail_forwarder_objects_unsent"] == 1
    messages = outgoing.next_messages(at(1))
    outgoing.record_failure(messages, UnavailableError("down"), at(1))
    outgoing.record_response(outgoing.next_messages(at(60)), (), at(60))
    found = samples(cluster, outgoing)
    assert found["dovetail_forwarder_messages_retried_total"] == 1
    assert found["dovetail_forwarder_messages_sent_total"] == 1
    assert found["dovetail_forwarder_objects_dropped_total"] == 0


def test_names_are_escaped() -> None:
    cluster = Cluster()
    cluster.see(provisioner(name='a"b\\c\nd'))
    assert samples(cluster)['dovetail_owner_held{owner="a\\"b\\\\c\\nd"}'] == 0


def test_the_dashboard_shows_each_metric_and_no_other() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"dovetail_\w+", target["expr"])
    }
    text = metrics_text(Cluster().observer, OutgoingMessages("c1", lambda: 0.5), T0)
    assert asked == set(re.findall(r"^# TYPE (\S+) ", text, flags=re.MULTILINE))
