"""Pods: conditions, owners, ports, claims, and sharing."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from shared.manifests import pods as module
from shared.manifests.pods import PodDecoder, decode_pod
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Effect, Toleration
from shared.model.kubernetes.volumes import Claim
from shared.model.values import replace


def pod(
    name: str = "p",
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "uid": f"uid-{name}", **metadata},
        "spec": spec or {},
        "status": status or {},
    }


def unschedulable(reason: str = "Unschedulable") -> dict[str, Any]:
    return {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}],
    }


def owned_by(kind: str, *, controller: bool = True) -> list[dict[str, Any]]:
    owner = {"kind": kind, "name": "o", "uid": "u", "apiVersion": "apps/v1"}
    return [{**owner, "controller": controller}]


def test_a_pod_marked_unschedulable_is_provisionable() -> None:
    found = decode_pod(pod(status=unschedulable(), ownerReferences=owned_by("ReplicaSet")))
    assert found.is_provisionable
    assert found.owner == ControllerRef(kind="ReplicaSet", name="o", uid="u", api_version="apps/v1")
    assert (found.key, found.uid) == ("shop/p", "uid-p")


@pytest.mark.parametrize(
    "raw",
    [
        pod(),
        pod(status=unschedulable("SchedulingGated")),
        pod(status=unschedulable(), spec={"schedulingGates": [{"name": "g"}]}),
        pod(status=unschedulable(), spec={"schedulerName": "fargate-scheduler"}),
        pod(status=unschedulable(), spec={"nodeName": "n"}),
        pod(status={**unschedulable(), "nominatedNodeName": "n"}),
        pod(status={**unschedulable(), "phase": "Failed"}),
        pod(status=unschedulable(), ownerReferences=owned_by("DaemonSet")),
        pod(status=unschedulable(), ownerReferences=owned_by("Node")),
        pod(status=unschedulable(), annotations={"kubernetes.io/config.mirror": "x"}),
        pod(status=unschedulable(), deletionTimestamp="2026-01-01T00:00:30Z"),
    ],
)
def test_other_pods_are_not_provisionable(raw: dict[str, Any]) -> None:
    assert not decode_pod(raw).is_provisionable


def test_an_owner_that_does_not_control_is_none() -> None:
    assert decode_pod(pod(ownerReferences=owned_by("Job", controller=False))).owner is None


def test_a_terminating_pod_says_when_it_must_be_gone() -> None:
    raw = pod(
        spec={"terminationGracePeriodSeconds": 60},
        deletionTimestamp="2026-01-01T00:00:05+00:00",
        deletionGracePeriodSeconds=5,
        creationTimestamp="2026-01-01T00:00:00Z",
    )
    found = decode_pod(raw)
    assert found.deletion_at == datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert found.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert found.grace_period_seconds == 5
    del raw["metadata"]["deletionTimestamp"]
    assert decode_pod(raw).grace_period_seconds == 60


def test_times_without_a_zone_are_utc_and_nonsense_is_none() -> None:
    assert decode_pod(pod(creationTimestamp="2026-01-01T00:00:00")).created_at == datetime(
        2026, 1, 1, tzinfo=UTC
    )
    assert decode_pod(pod(creationTimestamp="soon")).created_at is None


def test_a_ready_running_pod() -> None:
    status = {
        "phase": "Running",
        "conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True"},
        ],
    }
    found = decode_pod(pod(spec={"nodeName": "n", "priorityClassName": "high"}, status=status))
    assert found.ready
    assert (found.phase, found.node_name, found.priority_class) == ("Running", "n", "high")


def test_annotations_that_may_carry_secrets_are_dropped() -> None:
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": '{"env": "secret"}',
        **dict.fromkeys((*keys.POD_BLOCKING_ANNOTATIONS, keys.POD_DELETION_COST), "true"),
    }
    kept = decode_pod(pod(annotations=annotations)).annotations
    assert kept.keys() == annotations.keys() - {"kubectl.kubernetes.io/last-applied-configuration"}


def test_tolerations_keep_their_order_and_their_empty_parts() -> None:
    spec = {
        "tolerations": [
            {"operator": "Exists"},
            {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 300},
        ]
    }
    assert decode_pod(pod(spec=spec)).scheduling.tolerations == (
        Toleration(operator="Exists"),
        Toleration(key="a", value="b", effect=Effect.NO_EXECUTE, seconds=300),
    )


@pytest.mark.parametrize(
    ("toleration", "words"),
    [
        ({"key": "a", "operator": "Lt", "value": "3"}, "operator: 'Lt' is not supported"),
        ({"key": "a", "operator": "Exists", "effect": "Never"}, "effect: 'Never' is unknown"),
    ],
)
def test_a_toleration_that_cannot_be_honoured_refuses_the_pod(
    toleration: dict[str, Any], words: str
) -> None:
    found = decode_pod(pod(spec={"tolerations": [toleration]})).scheduling
    assert found.tolerations == ()
    assert words in found.refusals[0]


def test_a_pod_for_another_operating_system_is_refused() -> None:
    found = decode_pod(pod(spec={"os": {"name": "windows"}})).scheduling
    assert found.refusals == ("spec.os.name: 'windows': only Linux instances are launched",)
    assert decode_pod(pod(spec={"os": {"name": "linux"}})).scheduling.refusals == ()


def test_host_ports_come_from_containers_and_sidecars() -> None:
    spec = {
        "containers": [
            {"ports": [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]},
            {"ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]},
        ],
        "initContainers": [
            {"restartPolicy": "Always", "ports": [{"hostPort": 81}]},
            {"ports": [{"hostPort": 82}]},
        ],
    }
    assert decode_pod(pod(spec=spec)).scheduling.host_ports == (
        ("0.0.0.0", "TCP", 80),
        ("0.0.0.0", "TCP", 81),
        ("10.0.0.1", "UDP", 53),
    )


def test_on_the_hosts_network_every_port_is_a_host_port() -> None:
    spec = {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 9100}, {}]}]}
    assert decode_pod(pod(spec=spec)).scheduling.host_ports == (("0.0.0.0", "TCP", 9100),)


def test_claims_include_those_of_generic_ephemeral_volumes() -> None:
    spec = {
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "tmp", "emptyDir": {}},
        ]
    }
    assert decode_pod(pod("web-1", spec)).scheduling.claims == ("data-0", "web-1-scratch")


def test_device_claims_scheduler_and_priority() -> None:
    spec = {"resourceClaims": [{"name": "gpu"}], "schedulerName": "own", "priority": -3}
    found = decode_pod(pod(spec=spec)).scheduling
    assert (found.resource_claims, found.scheduler_name, found.priority) == (True, "own", -3)


def test_pods_of_one_workload_share_one_scheduling_and_one_label_map() -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    decoder = PodDecoder()
    one = decoder.decode(pod("a", spec, labels={"app": "x"}))
    bound = {**spec, "nodeName": "n"}
    two = decoder.decode(pod("b", bound, {"phase": "Running"}, labels={"app": "x"}))
    assert one.scheduling is two.scheduling
    assert one.labels is two.labels


def test_what_differs_in_the_manifest_but_not_in_meaning_is_shared_too() -> None:
    decoder = PodDecoder()

    def on(node: str) -> dict[str, Any]:
        names = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        terms = {"nodeSelectorTerms": [{"matchFields": names}]}
        key = "requiredDuringSchedulingIgnoredDuringExecution"
        return {"affinity": {"nodeAffinity": {key: terms}}}

    assert (
        decoder.decode(pod("a", on("n1"))).scheduling
        is decoder.decode(pod("b", on("n2"))).scheduling
    )


@pytest.mark.parametrize(
    ("entry", "other"),
    [
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"a": "2"}}),
        ({"priority": 1}, {"priority": 2}),
        (
            {"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]},
            {"volumes": [{"persistentVolumeClaim": {"claimName": "y"}}]},
        ),
    ],
)
def test_what_decides_placement_is_not_shared(entry: dict[str, Any], other: dict[str, Any]) -> None:
    decoder = PodDecoder()
    first, second = decoder.decode(pod("a", entry)), decoder.decode(pod("a", other))
    assert first.scheduling != second.scheduling


def test_a_label_that_is_null_is_an_empty_string() -> None:
    assert decode_pod(pod(labels={"a": None, "b": 1})).labels == {"a": ""}


def test_labels_named_by_match_label_keys_enter_the_hash() -> None:
    spread = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["rev"]}
    spec = {"topologySpreadConstraints": [spread]}
    decoder = PodDecoder()
    one = decoder.decode(pod("a", spec, labels={"rev": "1", "i": "0"}))
    two = decoder.decode(pod("b", spec, labels={"rev": "1", "i": "1"}))
    three = decoder.decode(pod("c", spec, labels={"rev": "2", "i": "1"}))
    assert one.scheduling is two.scheduling
    assert one.scheduling != three.scheduling


def test_the_decoders_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHE_ENTRIES", 2)
    decoder = PodDecoder()
    for number in range(7):
        assert decoder.decode(pod(spec={"priority": number})).scheduling.priority == number
    assert len(decoder._by_content) <= 3
    for number in range(7):
        labels = {"job": str(number)}
        assert decoder.decode(pod(labels=labels)).labels == labels
    assert len(decoder._labels) <= 2


def test_invalid_pod_is_read_as_far_as_possible() -> None:
    raw = {
        "metadata": {"name": "odd", "labels": {"a": 1, "b": "2"}, "ownerReferences": "none"},
        "spec": {"containers": [None, {"ports": None}], "tolerations": {}, "priority": True},
        "status": None,
    }
    found = decode_pod(raw)
    assert (found.name, found.labels, found.phase) == ("odd", {"b": "2"}, "Pending")
    assert found.scheduling.priority == 0


def test_what_only_yaml_can_hold_is_no_hindrance() -> None:
    """A day without quotes is no text in YAML."""
    decoder = PodDecoder()
    spec = {"affinity": {"day": date(2026, 1, 1)}, "priority": 3}
    one, two = (decoder.decode(pod(name, spec)) for name in ("a", "b"))
    assert one.scheduling is two.scheduling
    assert one.scheduling.priority == 3


def test_pods_differ_in_their_claims_alone() -> None:
    def claiming(name: str, *claims: str) -> dict[str, Any]:
        volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
        return pod(name, {"volumes": volumes})

    decoder = PodDecoder()
    first, same, other, none = (
        decoder.decode(claiming(name, *claims)).scheduling
        for name, claims in (("a", ("x",)), ("b", ("x",)), ("c", ("y",)), ("d", ()))
    )
    assert first is same
    assert (first.claims, other.claims, none.claims) == (("x",), ("y",), ())
    assert replace(other, claims=()) == none


def test_ephemeral_volumes_are_claims_of_each_pod() -> None:
    template = {"spec": {"storageClassName": "gp3"}}
    spec = {"volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]}
    found = decode_pod(pod("web-1", spec))
    assert found.scheduling.claims == ("web-1-tmp",)
    assert found.ephemeral == (
        Claim(namespace=found.namespace, name="web-1-tmp", storage_class="gp3"),
    )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30m", 1800), ("1h30m", 5400), ("true", None), ("0s", None), ("-5m", None), ("abc", None)],
)
def test_do_not_disrupt_may_say_a_span_from_the_pods_start(
    written: str, seconds: int | None
) -> None:
    raw = {
        "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": written}},
        "status": {"startTime": "2026-11-24T12:00:00Z"},
    }
    found = decode_pod(raw)
    assert found.started_at == datetime(2026, 11, 24, 12, tzinfo=UTC)
    assert found.kept_for == (None if seconds is None else timedelta(seconds=seconds))
    held = found.blocking_annotation_at(datetime(2026, 11, 24, 12, tzinfo=UTC))
    assert bool(held) is (written == "true" or bool(seconds))
