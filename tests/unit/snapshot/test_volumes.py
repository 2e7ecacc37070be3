"""What is read of volumes and namespaces, and when."""

from typing import Any

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.launches import PodRef, SlotOwner
from shared.model.errors import UnauthorizedError
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import (
    EBS_DRIVER,
    Claim,
    CsiNodeLimits,
    VolumeAttachment,
    attachable,
)
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.snapshot.gather import gather
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody, PromisedSlot
from tests import builders as make
from tests.builders import NOW, node, pod, provisioner
from tests.unit.manifests.volumes.storage_documents import (
    ZONE,
    claim,
    in_zones,
    storage_class,
    volume,
)
from tests.unit.worlds import World

EBS = attachable(EBS_DRIVER)
RARE = {"claims", "volumes", "storage_classes", "attach_limits", "attached_volumes", "namespaces"}


def claiming(name: str, *claims: str, **more: Any) -> Pod:
    return replace(pod(name, claims=claims, **more), namespace="shop")


def seen(world: World) -> ClusterSnapshot:
    return gather(world.ports, "plan").snapshot


def world(*pods: Pod, raws: tuple[dict[str, Any], ...] = ()) -> World:
    made = World(provisioner(), node())
    made.cluster.apply(*raws)
    for other_pod in pods:
        made.cluster.pods[other_pod.key] = other_pod
    return made


def test_volumes_are_read_only_for_pods_that_wait_with_a_claim() -> None:
    gated = claiming("gated", "data", gated=True)
    there = world(pod(), gated)
    assert [other_pod.scheduling.claims for other_pod in seen(there).pending] == [(), ("data",)]
    assert RARE.isdisjoint(there.cluster.reads)


def test_a_bound_volume_needs_no_class() -> None:
    raws = (claim(spec={"volumeName": "pv"}), volume("pv", in_zones(ZONE), csi=None, nfs={"a": 1}))
    there = world(claiming("a", "data"), raws=raws)
    (found,) = seen(there).pending
    assert found.scheduling.volume_terms == ((make.needs(keys.ZONE, "In", ZONE),),)
    assert RARE.intersection(there.cluster.reads) == {"claims", "volumes"}
    assert found.scheduling.requests == make.scheduling().requests


def test_a_wrong_claim_is_a_reason_for_its_pod_alone() -> None:
    raws = (claim(spec={"storageClassName": "gp3"}), storage_class("gp3"))
    there = world(claiming("a", "data"), claiming("b", "gone"), pod("c"), raws=raws)
    found = {other_pod.name: other_pod.scheduling.refusals for other_pod in seen(there).pending}
    assert found == {
        "a": (),
        "b": ("volume: claim shop/gone does not exist: create it",),
        "c": (),
    }


def test_attachments_are_counted_where_a_driver_limits_them() -> None:
    raws = (
        claim(spec={"storageClassName": "gp3"}),
        claim("used", spec={"volumeName": "pv-used"}),
        storage_class("gp3"),
    )
    standing = claiming("z", "used", node_name="n1")
    there = world(claiming("a", "data"), standing, raws=raws)
    there.cluster.store(
        CsiNodeLimits(node_name="n1", counts={EBS_DRIVER: 4}),
        VolumeAttachment(node_name="n1", driver=EBS_DRIVER, volume="pv-used"),
        VolumeAttachment(node_name="n1", driver=EBS_DRIVER, volume="pv-other"),
    )
    there.ledger.slot_values["test", "i-slot0"] = make.slot()
    found = seen(there)
    assert found.pending[0].scheduling.requests[EBS] == 1
    assert found.nodes[0].allocatable[EBS] == 2
    assert found.instance_types[0].allocatable[EBS] == 25
    assert [slot.allocatable[EBS] for slot in found.slots] == [4]
    assert found.bound == (standing,)


def test_free_volumes_made_by_hand_are_looked_for() -> None:
    local = storage_class("local", provisioner="kubernetes.io/no-provisioner")
    free = volume("free", in_zones("n1", key=keys.HOSTNAME), storageClassName="local", csi=None)
    raws = (claim(spec={"storageClassName": "local"}), local, free)
    (found,) = seen(world(claiming("a", "data"), raws=raws)).pending
    assert found.scheduling.volume_terms == ((make.needs(keys.HOSTNAME, "In", "n1"),),)


def test_ephemeral_volumes_ask_by_their_template() -> None:
    to_be = Claim(namespace="shop", name="a-tmp", storage_class="gp3")
    there = world(claiming("a", "a-tmp", ephemeral=(to_be,)), raws=(storage_class("gp3", ZONE),))
    (found,) = seen(there).pending
    assert found.scheduling.volume_terms == ((make.needs(keys.ZONE, "In", ZONE),),)
    assert found.ephemeral == ()


def test_a_nominated_pod_keeps_its_attachment() -> None:
    raws = (
        claim("a", spec={"storageClassName": "gp3"}),
        claim("b", spec={"storageClassName": "gp3"}),
        storage_class("gp3"),
    )
    there = world(claiming("a", "a"), claiming("b", "b", nominated_node="n1"), raws=raws)
    assert [other_pod.scheduling.requests[EBS] for other_pod in seen(there).pending] == [1, 1]


def test_pods_of_one_claim_are_drawn_to_the_one_that_has_a_node() -> None:
    raws = (claim(spec={"volumeName": "pv"}), volume("pv", in_zones(ZONE)))
    there = world(claiming("a", "data"), claiming("z", "data", node_name="n1"), raws=raws)
    found = seen(there)
    (term,) = found.pending[0].scheduling.ties
    assert term.selector is not None
    assert term.selector.selects(found.bound[0].labels)
    assert found.nodes[0].allocatable[EBS] == 24


def test_a_claim_for_a_single_pod_is_not_free_before_that_pod_is_gone() -> None:
    modes = {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]}
    raws = (claim(spec=modes), volume("pv", in_zones(ZONE)))
    ending = claiming("z", "data", node_name="n1", deletion_at=NOW)
    (found,) = seen(world(claiming("a", "data"), ending, raws=raws)).pending
    (reason,) = found.scheduling.refusals
    assert reason == "volume: claim shop/data is for a single pod, and shop/z has it"
    there = world(claiming("a", "data"), claiming("z", "data", node_name="n2"), raws=raws)
    there.cluster.node_values["n2"] = node("n2", unschedulable=True)
    (found,) = seen(there).pending
    assert found.scheduling.refusals == (reason,)


def test_a_claim_for_a_single_pod_is_of_the_one_that_is_promised_a_place() -> None:
    modes = {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]}
    raws = (claim(spec=modes), volume("pv", in_zones(ZONE)))
    waiting, coming = claiming("a", "data"), claiming("z", "data")
    there = world(waiting, coming, raws=raws)
    there.ledger.slot_values["test", "i-slot0"] = make.slot(pods=(make.ref(coming),))
    refused = {other_pod.name: other_pod.scheduling.refusals for other_pod in seen(there).pending}
    assert refused["z"] == ()
    assert refused["a"] == ("volume: claim shop/data is for a single pod, and shop/z has it",)


def test_a_role_that_may_not_read_volumes_leaves_only_their_pods() -> None:
    there = world(claiming("a", "data"), pod("b"))
    there.cluster.fail_next("claims", UnauthorizedError("GET: 403"))
    first, second = sorted(seen(there).pending, key=lambda entry: entry.name)
    (reason,) = first.scheduling.refusals
    assert "cannot be read: GET: 403; apply infra/cluster/access.yaml" in reason
    assert second.scheduling.refusals == ()


def test_labels_of_namespaces_are_read_when_a_rule_asks_for_them() -> None:
    raw = {"kind": "Namespace", "metadata": {"name": "team-a", "labels": {"tier": "gold"}}}
    plain = world(pod(affinity=(make.affinity(),)), raws=(raw,))
    assert seen(plain).namespaces == {}
    assert "namespaces" not in plain.cluster.reads
    by_label = make.affinity(namespace_selector=make.selector(tier="gold"))
    for asking in (
        pod(anti_affinity=(by_label,)),
        pod("z", node_name="n1", affinity=(by_label,)),
    ):
        there = world(pod(), asking, raws=(raw,))
        assert dict(seen(there).namespaces["team-a"])["tier"] == "gold"


def test_daemons_that_are_never_made_are_left_out_with_a_note() -> None:
    there = world(pod())
    wrong = replace(make.daemonset("wrong"), problem="spec.selector is wrong")
    there.cluster.add(make.daemonset(), wrong)
    gathered = gather(there.ports, "plan")
    assert [daemon_set.name for daemon_set in gathered.snapshot.daemonsets] == ["logs"]
    assert gathered.notes == ("DaemonSet kube-system/wrong is left out: spec.selector is wrong",)


def body(*slots: PromisedSlot) -> LaunchBody:
    attempt = LaunchAttempt(
        cluster="test",
        plan_id="plan-1",
        group=0,
        number=0,
        provisioner="default",
        labels={"team": "a"},
        slots=slots,
        options=(make.option(),),
        fallback=(make.option(200_000),),
        stamp={},
        owner=SlotOwner(kind=OwnerKind.PROVISIONER, uid="u"),
    )
    return LaunchBody(attempt=attempt, templates={}, request={})


def promised(number: int, *pods: PodRef) -> PromisedSlot:
    return PromisedSlot(number=number, pods=pods, daemon_requests=Resources.of(cpu=100))


def test_nodes_of_an_open_launch_are_known_as_they_were_planned() -> None:
    there = world(pod("a"), pod("b"))
    gone = PodRef(namespace="default", name="gone", uid="gone")
    first, second = (make.ref(other_pod) for other_pod in (pod("a"), pod("b")))
    written = body(promised(0, first), promised(1, second, gone))
    there.decisions.documents["body"] = written.to_bytes()
    there.decisions.documents["broken"] = b"{}"
    for number, key in enumerate(("body", "lost")):
        there.ledger.intents["test", "plan-1", number] = make.intent(
            body_key=key, group=number, created_at=NOW
        )
    there.ledger.slot_values["test", "i-slot0"] = make.slot(0)
    found = seen(there)
    assert found.promised == {first.uid, second.uid, "gone"}
    (launching,) = found.launching
    assert launching.pods == (second, gone)
    assert (launching.provisioner, dict(launching.labels)) == ("default", {"team": "a"})
    assert launching.requests == pod("b").scheduling.requests
    assert (launching.options, launching.fallback) == ((make.option(),), (make.option(200_000),))
    assert launching.daemon_requests == Resources.of(cpu=100)
