"""`dovetail why` of a workload, a NodePool and the cluster."""

from functions.cli.doctor.why import Answer, Why
from functions.cli.doctor.why_group import WhyGroup
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.provisioner import InvalidProvisioner
from shared.model.values import replace
from tests.builders import node, node_of, pod, provisioner
from tests.unit.worlds import World


def group(world: World) -> WhyGroup:
    return WhyGroup(world.ports, Why(world.ports))


def of_deployment(name: str, **more: object) -> Pod:
    """Return a pod of the Deployment `api`."""
    owner = ControllerRef(kind="ReplicaSet", name="api-5d9f", uid="u", api_version="apps/v1")
    return pod(name, owner=owner, labels={"pod-template-hash": "5d9f"}, **more)


def test_a_workload_says_where_its_pods_are_and_what_the_first_waits_for() -> None:
    world = World(
        provisioner(),
        node_of("n1"),
        of_deployment("api-1", node_name="n1"),
        of_deployment("api-2", cpu=10**9),
        pod("other"),
    )
    answer = group(world).workload("deployment", "default", "api")
    assert answer.subject == "deployment/default/api"
    assert answer.state == "has 1 pod on 1 node, 1 pod without a node"
    assert answer.current[0].startswith("pod/default/api-2 is pending")
    assert answer.waits_for == ("a change: it fits no node that could be launched",)
    of_set = group(world).workload("replicaset", "default", "api-5d9f")
    assert of_set.state == answer.state


def test_a_workload_whose_pods_run_waits_for_nothing() -> None:
    world = World(provisioner(), node_of("n1"), of_deployment("api-1", node_name="n1"))
    assert group(world).workload("deployment", "default", "api").waits_for == ()


def of_pool(name: str, **more: str) -> dict[str, str]:
    return {keys.NODE_POOL: name, **more}


def test_a_node_pool_says_what_it_has_and_what_holds_it() -> None:
    joined = replace(node_of("n1"), labels=of_pool("default", **{keys.INITIALIZED: "true"}))
    starting = replace(node("n2"), labels=of_pool("default"))
    pool = provisioner(kind=OwnerKind.NODE_POOL, paused=True)
    world = World(pool, joined, starting, replace(joined, name="n3", uid="u3", ready=False))
    answer = group(world).owner("nodepool", "default")
    assert answer.state.startswith("has 3 nodes, $")
    assert answer.current == ("1 node starting: n2", "1 node NotReady: n3")
    assert answer.waits_for == ("it is paused",)


def test_a_provisioner_that_cannot_be_used_says_what_is_wrong() -> None:
    world = World()
    world.cluster.add(invalid("bad"))
    answer = group(world).owner("provisioner", "bad")
    assert (answer.state, answer.waits_for) == (
        "launches nothing: it cannot be used",
        ("spec.x: unknown field",),
    )


def invalid(name: str) -> InvalidProvisioner:
    return InvalidProvisioner(
        name=name, uid="u", resource_version="1", reasons=("spec.x: unknown field",)
    )


def test_the_cluster_says_in_five_lines_how_it_is() -> None:
    world = World(provisioner(), node_of("n1"), pod("a", cpu=10**9))
    world.cluster.add(invalid("bad"))
    answer: Answer = group(world).cluster()
    assert answer.state.startswith("has 1 node, $")
    assert answer.current[:3] == (
        "waits: 1 pod of default/web",
        "goes: 0 nodes, $0.0000/h",
        "refused: Provisioner bad: spec.x: unknown field",
    )
    assert answer.current[3].startswith("costs: $")
    assert answer.helps
