"""Nodes of a NodePool, from the pod that waits to the machine that is gone."""

import base64
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.expiration_timer import Expiration
from shared.nodes.leave.termination import Termination
from shared.ports import MachineImage, NoRivals, PoolStatus, Rival, RivalKind, TimerKind
from shared.snapshot.gather import gather
from tests.builders import GIB, NOW, node, pod, provisioner
from tests.unit.worlds import MINUTE, NAME, SECOND, World


class Karpenter:
    def running(self) -> tuple[Rival, ...]:
        return (Rival(kind=RivalKind.KARPENTER, where="kube-system/karpenter"),)


CLOSED = Taint(key=keys.UNREGISTERED_TAINT, effect=Effect.NO_SCHEDULE)
DAY = timedelta(days=1)


def node_class(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "nodes"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"cluster": "test"}}],
            "securityGroupSelectorTerms": [{"tags": {"cluster": "test"}}],
            "instanceProfile": "workers",
            "tags": {"cost-centre": "7"},
            **spec,
        },
    }


def node_pool(name: str = "pool", spec: dict[str, Any] | None = None, **more: Any) -> Any:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "nodes"}
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    ]
    shape = {"nodeClassRef": ref, "requirements": requirements, **(spec or {})}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1},
        "spec": {
            "template": {"metadata": {"labels": {"team": "red"}}, "spec": shape},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
            **more,
        },
    }


def world_of(*values: Any, pool: Any = None, described: Any = None) -> World:
    world = World(*values)
    world.cluster.apply(described or node_class(), pool or node_pool())
    return world


def test_a_pod_gets_a_node_of_the_pool_that_empties_and_goes() -> None:
    world = world_of(pod())
    assert world.provision().nodes_launched == 1
    (machine,) = world.alive
    launched = world.node
    assert world.bound == {"a": launched.name}
    assert (launched.provisioner, launched.is_ours) == ("pool", True)
    assert launched.labels[keys.NODE_POOL] == "pool"
    assert launched.labels[keys.NODE_CLASS] == "nodes"
    assert launched.labels["team"] == "red"
    assert keys.PROVISIONER_NAME not in launched.labels
    assert CLOSED in launched.taints
    assert all(taint.effect == Effect.NO_SCHEDULE for taint in launched.taints)
    assert launched.owners == ("uid-pool",)
    assert machine.tags[keys.TAG_NODE_POOL] == machine.tags[keys.PROVISIONER_NAME] == "pool"
    assert machine.tags["cost-centre"] == "7"
    assert keys.NODE_POOL not in machine.tags  # or Karpenter would terminate it
    assert world.messages("Launched", "NodePool")
    assert len(world.outbox.timers_of(TimerKind.EXPIRATION)) == 1

    world.kubelet_joins(launched.name)
    assert world.bind(launched.name).initialized
    assert not world.node.is_closed
    assert world.node.is_initialized
    assert world.ledger.slots(NAME) == ()

    world.cluster.pods.clear()
    assert Emptiness(world.ports).begin(launched.name) == "timer started"
    world.advance(30 * SECOND)
    timer = world.outbox.timers_of(TimerKind.EMPTINESS)[-1]
    assert Emptiness(world.ports).step(timer.payload)["result"] == "removed"
    drain = world.outbox.timers_of(TimerKind.TERMINATION)[-1].payload
    assert Termination(world.ports, None).step(drain)["result"] == "terminated"
    assert world.alive == []
    assert world.cluster.nodes() == ()
    assert world.messages("Terminated", "NodePool")


def test_a_pool_without_architecture_launches_what_its_images_boot() -> None:
    on_demand = {"key": keys.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}
    described = node_class(amiSelectorTerms=[{"id": "ami-1"}], amiFamily="AL2023")
    world = world_of(
        pod(memory=GIB), pool=node_pool(spec={"requirements": [on_demand]}), described=described
    )
    (small, *_) = world.catalog.instance_types()
    world.cloud.images = (
        MachineImage(image_id="ami-1", name="mine", architecture="amd64", created_at=NOW),
    )
    assert small.labels[keys.ARCH] == "arm64"
    assert min(small.offerings).price_micros_per_hour < 96_000
    assert world.provision().nodes_launched == 1
    assert world.node.labels[keys.INSTANCE_TYPE] == "m5.large"


def test_the_kubelet_registers_with_no_execute_as_karpenter_says() -> None:
    world = world_of(pod())
    world.provision()
    ((data, _),) = world.cloud.templates.values()
    text = base64.b64decode(data["UserData"]).decode()
    assert "karpenter.sh/unregistered" in text
    assert "NoExecute" in text
    assert keys.NOT_READY_TAINT not in text


def test_no_pod_is_bound_early_to_a_node_from_which_it_would_be_evicted() -> None:
    world = world_of(pod())
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    (machine,) = world.alive
    # Its kubelet is faster than Dovetail, and registers with the taint of its user data.
    made = node(
        machine.private_dns_name,
        labels={keys.NODE_POOL: "pool"},
        taints=(replace(CLOSED, effect=Effect.NO_EXECUTE),),
        finalizers=(),
        provider_id=machine.provider_id,
        ready=None,
    )
    world.cluster.add(made)
    assert not made.is_ours
    world.provision()
    assert world.node.is_ours
    assert world.bound == {}
    world.kubelet_joins(made.name)
    assert world.bind(made.name).pods_bound == 1
    assert not world.node.is_closed


def test_a_node_of_karpenter_is_not_of_the_pool() -> None:
    foreign = node(labels={**node().labels, keys.NODE_POOL: "pool"})
    labels = {k: v for k, v in foreign.labels.items() if k != keys.PROVISIONER_NAME}
    world = world_of(replace(foreign, labels=labels, annotations={}))
    assert not world.node.is_ours
    snapshot = gather(world.ports, "p", read_all=True).snapshot
    assert snapshot.owner_of(world.node) == ""
    assert Emptiness(world.ports).begin("n1") != "timer started"


def test_a_node_of_a_former_provisioner_is_not_of_the_pool_with_its_name() -> None:
    world = world_of(node(labels={**node().labels, keys.PROVISIONER_NAME: "pool"}))
    (pool,), _ = world.cluster.provisioners()
    assert world.node.is_ours
    assert not pool.owns(world.node)
    snapshot = gather(world.ports, "p", read_all=True).snapshot
    assert snapshot.owner_of(world.node) == ""
    payload = {"cluster": NAME, "node": "n1", "uid": world.node.uid, "since": NOW.isoformat()}
    assert Expiration(world.ports).step(payload)["result"] == "may not expire"


def test_a_machine_launched_for_a_former_provisioner_has_that_as_its_owner() -> None:
    world = World(provisioner("pool", uid="uid-former"), pod())
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    world.cluster.provisioner_values.clear()
    world.cluster.apply(node_class(), node_pool())
    world.advance(15 * SECOND)
    world.provision()
    assert world.node.owners == ("uid-former",)
    assert keys.NODE_POOL not in world.node.labels


def test_a_wrong_pool_costs_itself_only() -> None:
    world = world_of(provisioner(), pod(), pool=node_pool("wrong", replicas=3))
    world.provisioning().report_provisioners()
    assert world.cluster.conditions["NodePool/wrong"][:2] == (False, "NodePoolValidationFailed")
    assert world.messages("NodePoolValidationFailed", "NodePool")
    assert world.cluster.conditions["default"][0]
    assert world.provision().nodes_launched == 1


def test_a_pool_with_the_name_of_a_provisioner_cannot_be_used() -> None:
    world = world_of(provisioner("other"), pool=node_pool("default"))
    world.cluster.apply(
        {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner"}
        | {"metadata": {"name": "default"}, "spec": {}}
    )
    usable, (refused,) = world.cluster.provisioners()
    assert [(owner.kind, owner.name) for owner in usable] == [
        ("Provisioner", "default"),
        ("Provisioner", "other"),
    ]
    assert isinstance(refused, InvalidProvisioner)
    assert (refused.kind, refused.name) == ("NodePool", "default")
    assert "a Provisioner has this name" in refused.reasons[0]


def test_a_class_that_finds_nothing_says_so_and_so_does_its_pool() -> None:
    world = world_of()
    world.cloud.subnets = ()
    world.provisioning().report_provisioners()
    holds, reason, text = world.cluster.conditions["NodePool/pool"]
    assert (holds, reason) == (False, "NodeClassNotReady")
    assert "subnetSelectorTerms finds no subnet" in text
    assert world.cluster.class_statuses["nodes"].problems


def test_a_wrong_class_is_what_its_pool_waits_for() -> None:
    world = world_of(described=node_class(role="also"))
    world.provisioning().report_provisioners()
    assert world.cluster.conditions["NodePool/pool"][1] == "NodeClassNotReady"
    assert world.cluster.class_statuses["nodes"].invalid


def test_a_pool_and_its_class_are_ready() -> None:
    world = world_of()
    world.provisioning().report_provisioners()
    assert world.cluster.conditions["NodePool/pool"][:2] == (True, "Ready")
    status = world.cluster.class_statuses["nodes"]
    assert (status.problems, status.invalid) == ((), False)
    assert status.subnets
    assert status.instance_profile == "workers"


def test_a_class_that_no_pool_names_has_a_status_as_well() -> None:
    world = world_of()
    alone = node_class(role="mine", instanceProfile=None)
    alone["metadata"]["name"] = "alone"
    world.cluster.apply(alone)
    world.provisioning().report_provisioners()
    status = world.cluster.class_statuses["alone"]
    assert status.subnets
    assert status.instance_profile == ""
    assert "node_roles=test:mine" in status.problems[0]


def test_status_of_a_pool_counts_its_nodes_and_whether_they_join() -> None:
    world = world_of(pod())
    world.sweep()
    nothing = PoolStatus(nodes=0, resources=Resources())
    assert world.cluster.pool_statuses == {"pool": nothing}
    world.provision()
    world.kubelet_joins(world.node.name)
    world.bind(world.node.name)
    world.sweep()
    found = world.cluster.pool_statuses["pool"]
    assert (found.nodes, found.resources) == (1, world.node.capacity)
    assert found.registers


def test_status_of_a_provisioner_says_what_its_nodes_cost() -> None:
    world = World(provisioner(), pod())
    world.provision()
    world.sweep()
    found = world.cluster.provisioner_statuses["default"]
    assert (found.nodes, found.resources) == (1, world.node.capacity)
    price = int(world.node.annotations[keys.PRICE])
    assert found.price_micros_per_hour == price > 0
    assert world.cluster.pool_statuses == {}


def test_wrong_pool_is_counted_too_and_none_beside_another_autoscaler() -> None:
    world = world_of()
    world.cluster.apply(node_pool("wrong", replicas=3))
    world.ports = replace(world.ports, rivals=Karpenter())
    world.sweep()
    assert world.cluster.pool_statuses == {}
    world.ports = replace(world.ports, rivals=NoRivals())
    world.sweep()
    assert sorted(world.cluster.pool_statuses) == ["pool", "wrong"]


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("shadow", [False, True])
def test_no_status_is_written_where_karpenter_may_read_it(*, paused: bool, shadow: bool) -> None:
    world = world_of(provisioner())
    brakes = Brakes(paused=paused, shadow=shadow)
    rivals = NoRivals() if shadow else Karpenter()
    world.ports = replace(world.ports, brakes=brakes, rivals=rivals)
    world.cluster.apply(node_pool("wrong", replicas=3), node_class(role="also"))
    world.provisioning().report_provisioners()
    world.provision()
    told = {*world.cluster.conditions, *world.cluster.within_ceiling}
    assert "default" in told
    assert not [name for name in told if name.startswith("NodePool/")]
    assert world.cluster.class_statuses == {}


def expired(world: World) -> Any:
    (timer,) = world.outbox.timers_of(TimerKind.EXPIRATION)
    return Expiration(world.ports).step(timer.payload)


def test_nodes_expire_after_thirty_days_where_nothing_is_said() -> None:
    world = world_of(pod())
    world.provision()
    world.kubelet_joins(world.node.name)
    world.bind(world.node.name)
    world.cluster.pods.clear()
    world.advance(29 * DAY)
    assert expired(world)["next"] == "wait"
    world.advance(DAY + MINUTE)
    assert expired(world)["result"] == "removed"


def test_a_pool_is_one_of_those_that_plans_know() -> None:
    world = world_of(provisioner(), pod())
    owners: tuple[Provisioner, ...] = gather(world.ports, "p").snapshot.provisioners
    assert [(owner.kind, owner.name) for owner in owners] == [
        ("Provisioner", "default"),
        ("NodePool", "pool"),
    ]
