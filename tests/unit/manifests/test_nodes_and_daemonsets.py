"""Nodes and DaemonSets."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.nodes import decode_node, encode_taint
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.resources import Resources
from shared.planning.rules.daemon_overhead import runs_on


def node(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "ip-10-0-0-1",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"beta.kubernetes.io/arch": "arm64", "karpenter.sh/provisioner-name": "d"},
            "annotations": {"a": "b", "dovetail.dev/slot": "plan/0/0"},
            "finalizers": ["karpenter.sh/termination"],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "providerID": "aws:///us-west-2a/i-0123",
            "unschedulable": True,
            "taints": [
                {"key": "b", "effect": "NoSchedule", "value": "x"},
                {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
                {"key": "c", "effect": "Sometimes"},
            ],
        },
        "status": status,
    }


def test_a_node_keeps_the_order_of_its_taints() -> None:
    found = decode_node(node())
    assert found.taints == (
        Taint(key="b", value="x", effect=Effect.NO_SCHEDULE),
        Taint(key="a", effect=Effect.NO_EXECUTE),
        Taint(key="c", effect=Effect.NO_SCHEDULE),
    )
    assert [encode_taint(taint) for taint in found.taints[:2]] == [
        {"key": "b", "effect": "NoSchedule", "value": "x"},
        {"key": "a", "effect": "NoExecute"},
    ]


def test_every_field_of_a_dovetail_node_is_read() -> None:
    since = "2026-01-01T00:00:30Z"
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    amounts = {"cpu": "1930m", "memory": "6903Mi", "pods": 29, "broken": "1GiB"}
    found = decode_node(node(conditions=ready, allocatable=amounts, capacity={"cpu": "2"}))
    assert found.is_ours
    assert found.instance_id == "i-0123"
    assert found.unschedulable
    assert found.ready is True
    assert found.ready_changed_at == datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert found.allocatable == Resources.of(cpu=1930, memory=6903 * 2**20, pods=29)
    assert found.capacity == Resources.of(cpu=2000)
    assert found.labels["kubernetes.io/arch"] == "arm64"
    assert found.labels["beta.kubernetes.io/arch"] == "arm64"
    assert found.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert found.deletion_at is None


@pytest.mark.parametrize(
    ("status", "expected"), [("True", True), ("False", False), ("Unknown", None), (None, None)]
)
def test_ready_is_true_false_or_unknown(status: str | None, *, expected: bool | None) -> None:
    conditions = [{"type": "Ready", "status": status}] if status else []
    assert decode_node(node(conditions=conditions)).ready is expected


def daemonset(**spec: Any) -> dict[str, Any]:
    inside = {"containers": [{"resources": {"requests": {"cpu": "100m"}}}], **spec}
    return {
        "metadata": {"namespace": "kube-system", "name": "agent"},
        "spec": {"template": {"metadata": {"labels": {"app": "agent"}}, "spec": inside}},
    }


def test_a_daemonset_tolerates_what_its_controller_adds() -> None:
    found = decode_daemonset(
        daemonset(tolerations=[{"key": "own", "operator": "Exists"}, {"operator": "Exists"}])
    )
    assert (found.namespace, found.name) == ("kube-system", "agent")
    assert found.scheduling.requests == Resources.of(cpu=100, pods=1)
    assert found.scheduling.tolerations[0] == Toleration(key="own", operator="Exists")
    added = {toleration.key.rsplit("/", 1)[-1] for toleration in found.scheduling.tolerations[2:]}
    assert added == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    }


def test_a_daemonset_on_the_hosts_network_also_tolerates_an_absent_network() -> None:
    found = decode_daemonset(daemonset(hostNetwork=True))
    assert "node.kubernetes.io/network-unavailable" in {
        toleration.key for toleration in found.scheduling.tolerations
    }


def test_a_daemonset_that_names_its_nodes_runs_on_no_other() -> None:
    def runs(operator: str, **labels: str) -> bool:
        names = {"key": "metadata.name", "operator": operator, "values": ["n1"]}
        other = {"key": "team", "operator": "In", "values": ["a"]}
        terms = [{"matchFields": [names]}, {"matchExpressions": [other], "matchFields": [names]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return runs_on(decode_daemonset(daemonset(affinity={"nodeAffinity": required})), labels, ())

    there = {"kubernetes.io/hostname": "n1"}
    assert runs("In", **there)
    assert not runs("In", team="a")
    assert runs("NotIn", team="a")
    assert not runs("NotIn", **there)


def test_a_daemonset_has_no_claims_for_ephemeral_volumes() -> None:
    found = decode_daemonset(daemonset(volumes=[{"name": "v", "ephemeral": {}}]))
    assert found.scheduling.claims == ()
