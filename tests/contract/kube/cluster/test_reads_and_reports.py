"""The Cluster port: reading, and what people read."""

from shared.model.resources import Resources
from shared.model.values import replace
from shared.ports import ConditionType, KubernetesEvent, Severity
from tests.contract.kube.worlds import World, find, pod, provisioner


def test_pods_are_listed_by_where_they_are(world: World) -> None:
    for raw in (
        pod("b"),
        pod("a"),
        pod("bound", node="n1"),
        pod("done", node="n1", phase="Succeeded"),
        pod("elsewhere", node="n2"),
    ):
        world.apply(raw)
    cluster = world.cluster
    assert cluster.name == "c1"
    assert [pending_pod.key for pending_pod in cluster.pending_pods()] == ["shop/a", "shop/b"]
    assert [bound_pod.key for bound_pod in cluster.bound_pods()] == ["shop/bound", "shop/elsewhere"]
    assert [other_pod.key for other_pod in cluster.pods_on("n1")] == ["shop/bound", "shop/done"]
    assert find(world, "a").scheduling.requests == Resources.of(cpu=250, pods=1)
    assert find(world, "a").uid
    assert cluster.pod("shop", "none") is None
    assert cluster.node("none") is None


def test_pods_of_one_workload_share_their_scheduling(world: World) -> None:
    world.apply(pod("a"))
    world.apply(pod("b"))
    one, two = world.cluster.pending_pods()
    assert one.scheduling is two.scheduling


def test_provisioners_are_usable_or_refused_with_a_reason(world: World) -> None:
    world.apply(provisioner("b", weight=3))
    world.apply(provisioner("a"))
    # Past the schema: only the second look finds that no value is left.
    needs = [
        {"key": "team", "operator": "In", "values": ["a"]},
        {"key": "team", "operator": "NotIn", "values": ["a"]},
    ]
    world.apply(provisioner("bad", requirements=needs))
    usable, unusable = world.cluster.provisioners()
    assert [(other_provisioner.name, other_provisioner.weight) for other_provisioner in usable] == [
        ("a", 0),
        ("b", 3),
    ]
    assert [invalid_provisioner.name for invalid_provisioner in unusable] == ["bad"]
    assert "no value satisfies" in unusable[0].reasons[0]


def test_daemonsets_are_listed_with_their_overhead(world: World) -> None:
    template = {
        "metadata": {"labels": {"app": "d"}},
        "spec": {"containers": pod("x")["spec"]["containers"]},
    }
    world.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"namespace": "shop", "name": "d"},
            "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template},
        }
    )
    (found,) = world.cluster.daemonsets()
    assert (found.namespace, found.name) == ("shop", "d")
    assert found.scheduling.requests == Resources.of(cpu=250, pods=1)


def test_volume_attachments_of_a_node_are_named(world: World) -> None:
    world.attach("va-2", "n1", "pv-2")
    world.attach("va-1", "n1", "pv-1")
    world.attach("va-3", "n2", "pv-3")
    assert world.cluster.volume_attachments("n1") == ("va-1", "va-2")
    assert world.cluster.volume_attachments("n3") == ()


def kube_event(name: str, reason: str = "Unplaceable") -> KubernetesEvent:
    return KubernetesEvent(
        kind="Pod",
        namespace="shop",
        name=name,
        uid=f"uid-{name}",
        severity=Severity.WARNING,
        reason=reason,
        message="no instance type is large enough",
    )


def test_equal_happenings_are_counted(world: World) -> None:
    world.cluster.record_events([])
    world.cluster.record_events([kube_event("a")])
    world.cluster.record_events([kube_event("a"), kube_event("b"), kube_event("a")])
    world.cluster.record_events([kube_event("a", "Other")])
    assert world.kube_events() == {
        ("a", "Unplaceable"): 3,
        ("b", "Unplaceable"): 1,
        ("a", "Other"): 1,
    }


def test_events_about_an_object_are_read_back(world: World) -> None:
    world.cluster.record_events([kube_event("a"), kube_event("b")])
    world.cluster.record_events(
        [kube_event("a"), replace(kube_event("n"), kind="Node", namespace="")]
    )
    (of_pod,) = world.cluster.events("Pod", "shop", "a")
    assert (of_pod.reason, of_pod.count, of_pod.source) == ("Unplaceable", 2, "dovetail")
    assert of_pod.message == "no instance type is large enough"
    assert of_pod.at is not None
    (of_node,) = world.cluster.events("Node", "", "n")
    assert of_node.count == 1
    assert world.cluster.events("Pod", "shop", "c") == ()


def test_a_happening_about_a_cluster_wide_object_is_written_too(world: World) -> None:
    one = KubernetesEvent(
        kind="Provisioner",
        namespace="",
        name="default",
        uid="u",
        severity=Severity.NORMAL,
        reason="Paused",
        message="m",
    )
    world.cluster.record_events([one])
    assert world.kube_events() == {("default", "Paused"): 1}


def test_the_condition_of_a_provisioner_is_set_and_replaced(world: World) -> None:
    world.apply(provisioner("default"))
    cluster = world.cluster
    cluster.set_provisioner_condition("default", active=False, reason="Invalid", message="why")
    assert world.condition("default") == (False, "Invalid", "why")
    cluster.set_provisioner_condition("default", active=True, reason="Ready", message="")
    cluster.set_provisioner_condition("default", active=True, reason="Ready", message="")
    assert world.condition("default") == (True, "Ready", "")
    cluster.set_provisioner_condition(
        "default", active=False, reason="Never", message="m", kind=ConditionType.NODES_USABLE
    )
    assert world.condition("default", "NodesUsable") == (False, "Never", "m")
    assert world.condition("default") == (True, "Ready", "")
    cluster.set_provisioner_condition("gone", active=True, reason="Ready", message="")
