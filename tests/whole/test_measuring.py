"""What came of a run is read as it was."""

import json
from pathlib import Path

from shared.model.labels import REMOVAL_REASON
from shared.model.values import replace
from tests.builders import node, pod
from tests.weeks.traces import Change
from tests.whole.measuring import asked_of, differences, evicted_of, restarted_of


def test_pods_beyond_what_users_asked_for_replace_others() -> None:
    made = [replace(pod(f"web-{number}"), labels={"app": "web"}) for number in range(6)]
    changes = [
        (10, Change(0, "web", 2)),
        (30, Change(1, "web", 1)),
        (50, Change(2, "web", 2)),
        (70, Change(3, "web", 2, rolls=True)),
    ]
    log = [
        (11, None, made[0]),
        (12, None, made[1]),
        (20, None, made[2]),  # in place of one that was evicted
        (31, made[1], None),
        (51, None, made[3]),
        (71, None, made[4]),
        (72, made[4], replace(made[4], node_name="n")),
        (73, None, made[5]),
    ]
    assert restarted_of(changes, log) == {made[2].uid}


def test_an_eviction_has_its_cause_from_an_event_or_from_its_node() -> None:
    told, marked, other = (pod(name, node_name=f"node-{name}") for name in ("a", "b", "c"))
    removed = [(5, "a"), (6, "b"), (7, "c"), (8, "never bound")]
    gone = replace(node("node-b"), annotations={REMOVAL_REASON: "consolidation"})
    found = evicted_of(
        removed,
        [(1, None, one) for one in (told, marked, other, pod("never bound"))],
        [(1, None, node("node-b")), (2, node("node-b"), gone), (9, gone, None)],
        {"a": "Underutilized"},
    )
    assert found == [
        (5, told, "Underutilized"),
        (6, marked, "consolidation"),
        (7, other, "not said"),
    ]


def test_requests_are_those_of_the_autoscaler_within_the_run(tmp_path: Path) -> None:
    def row(
        second: int, user: str, verb: str, resource: str, sub: str = "", code: int = 200
    ) -> str:
        about = {"resource": resource, "subresource": sub, "name": f"pod-{second}"}
        return json.dumps(
            {
                "requestReceivedTimestamp": f"1970-01-01T00:00:0{second}.500000Z",
                "user": {"username": "admin"},
                "impersonatedUser": {"username": user},
                "verb": verb,
                "objectRef": about,
                "responseStatus": {"code": code},
            }
        )

    ours = "arn:aws:sts::1:assumed-role/DovetailBind/x"
    rows = [
        row(0, ours, "patch", "nodes"),
        row(1, ours, "patch", "nodes"),
        row(2, "system:node:a", "patch", "nodes"),
        row(3, ours, "watch", "pods"),
        row(4, ours, "create", "pods", "eviction", 201),
        row(5, ours, "create", "pods", "eviction", 429),
        row(6, ours, "delete", "pods"),
        row(7, ours, "patch", "nodes"),
    ]
    audit = tmp_path / "audit.log"
    audit.write_text("\n".join(rows))
    found = asked_of(audit, "dovetail", 1_000_000, 7_000_000)
    assert found.calls == {"create pods/eviction": 2, "patch nodes": 1, "delete pods": 1}
    assert found.removed == [(4_500_000, "pod-4"), (6_500_000, "pod-6")]


def test_a_count_is_what_was_added() -> None:
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 5, "c": 4}) == {"c": 4, "b": 3}
