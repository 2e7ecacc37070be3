"""What volumes ask, put among what their pods ask."""

from shared.manifests.volumes.attachment_limits import claims_of
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.manifests.volumes.pod_demands import with_volume_demands
from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import EBS_DRIVER, RESOLVED, attachable
from shared.model.values import replace
from shared.planning.rules.binding import needs_scheduler
from tests import builders as make
from tests.unit.manifests.volumes.storage_documents import (
    ZONE,
    claim,
    in_zones,
    storage_class,
    volume,
)
from tests.unit.manifests.volumes.volume_facts import facts, pod

IN_ZONE = make.needs(keys.ZONE, "In", ZONE)
EBS = attachable(EBS_DRIVER)
BOUND = claim(spec={"volumeName": "pv"})
OPEN = claim(spec={"storageClassName": "gp3"})


def resolved(found: VolumeLookup, *pods: Pod, standing: tuple[Pod, ...] = ()) -> tuple[Pod, ...]:
    return with_volume_demands(found, pods, standing, {EBS_DRIVER})[0]


def attached(found: VolumeLookup, *pods: Pod, standing: tuple[Pod, ...] = ()) -> list[int]:
    return [
        other_pod.scheduling.requests[EBS]
        for other_pod in resolved(found, *pods, standing=standing)
    ]


SHARED = claim(spec={"storageClassName": "gp3", "accessModes": ["ReadWriteMany"]})


def test_a_resolved_pod_carries_what_its_volumes_ask() -> None:
    plain = make.pod("c")
    found, same = resolved(facts(BOUND, volume("pv", in_zones(ZONE))), pod(), plain)
    assert found.scheduling.volume_terms == ((IN_ZONE,),)
    assert found.scheduling.required_terms == ()
    assert found.scheduling.requests[EBS] == 1
    assert found.scheduling.affinity == ()
    assert same is plain


def test_only_kube_scheduler_can_bind_what_a_resolved_pod_claims() -> None:
    (found,) = resolved(facts(OPEN, storage_class()), pod())
    assert found.scheduling.claims == RESOLVED
    assert needs_scheduler(found) == "its volumes are bound by kube-scheduler"


def test_a_wrong_volume_refuses_its_own_pod_only() -> None:
    refused, fine = resolved(facts(OPEN, storage_class()), pod("a", "none"), pod("b"))
    assert refused.scheduling.refusals == ("volume: claim shop/none does not exist: create it",)
    assert refused.scheduling.volume_terms == ()
    assert fine.scheduling.refusals == ()


def test_pods_that_ask_the_same_share_what_they_ask() -> None:
    claims = [claim(f"d{number}", spec={"storageClassName": "gp3"}) for number in range(3)]
    pods = [pod(f"p{number}", f"d{number}") for number in range(3)]
    found = resolved(facts(*claims, storage_class("gp3", ZONE)), *pods)
    assert len({id(other_pod.scheduling) for other_pod in found}) == 1


def test_pods_of_a_claim_of_one_node_stay_together_and_attach_it_once() -> None:
    facts_ = facts(OPEN, storage_class())
    pods = [pod(name) for name in ("a", "b", "c")]
    assert attached(facts_, *pods) == [0, 0, 0]
    for other_pod in resolved(facts_, *pods):
        assert other_pod.scheduling.shared == (("shop/data", EBS),)
        (term,) = other_pod.scheduling.ties
        assert (term.key, term.namespaces, term.weight) == (keys.HOSTNAME, ("shop",), None)
        assert term.selector is not None
        assert term.selector.selects(other_pod.labels)
        assert not term.selector.selects(pod().labels)


def test_a_pod_that_has_a_node_draws_the_others_of_its_claim() -> None:
    there = pod("z", node_name="n1")
    found, (marked,) = with_volume_demands(
        facts(OPEN, storage_class()), [pod()], [there], {EBS_DRIVER}
    )
    (term,) = found[0].scheduling.ties
    assert term.selector is not None
    assert term.selector.selects(marked.labels)
    assert marked.scheduling is there.scheduling
    assert found[0].scheduling.requests[EBS] == 0


def test_a_claim_of_many_nodes_is_counted_for_each_pod_and_keeps_to_a_zone_at_first() -> None:
    unbound = resolved(facts(SHARED, storage_class()), pod("a"), pod("b"))
    assert [other_pod.scheduling.requests[EBS] for other_pod in unbound] == [1, 1]
    assert [term.key for other_pod in unbound for term in other_pod.scheduling.ties] == [
        keys.ZONE
    ] * 2
    bound = claim(spec={"volumeName": "pv", "accessModes": ["ReadWriteMany"]})
    free = resolved(facts(bound, volume("pv")), pod("a"), pod("b"))
    assert [other_pod.scheduling.ties for other_pod in free] == [(), ()]
    assert [other_pod.scheduling.requests[EBS] for other_pod in free] == [1, 1]


def test_drivers_without_a_limit_are_not_counted_and_keep_no_pods_together() -> None:
    (first, second), _ = with_volume_demands(facts(OPEN, storage_class()), [pod("a"), pod("b")], [])
    assert first.scheduling is second.scheduling
    assert first.scheduling.requests == make.scheduling().requests
    assert first.scheduling.ties == ()


ONE_POD = claim(spec={"storageClassName": "gp3", "accessModes": ["ReadWriteOncePod"]})


def refusals(*pods: Pod, standing: tuple[Pod, ...] = ()) -> dict[str, tuple[str, ...]]:
    found = resolved(facts(ONE_POD, storage_class()), *pods, standing=standing)
    return {other_pod.name: other_pod.scheduling.refusals for other_pod in found}


def test_of_a_claim_for_a_single_pod_the_others_wait() -> None:
    text = "volume: claim shop/data is for a single pod, and shop/a has it"
    assert refusals(pod("a"), pod("b")) == {"a": (), "b": (text,)}


def test_the_more_important_pod_comes_first_and_one_that_waits_for_nothing_does_not() -> None:
    high = replace(pod("b"), scheduling=make.scheduling(claims=("data",), priority=5))
    assert [name for name, why in refusals(pod("a"), high).items() if not why] == ["b"]
    gated = replace(pod("a"), gated=True)
    assert refusals(gated, pod("b"))["b"] == ()


def test_nominated_pods_come_before_all_waiting_ones() -> None:
    coming = replace(pod("z"), nominated_node="n1")
    assert [name for name, why in refusals(pod("a"), coming).items() if not why] == ["z"]


def test_a_pod_that_can_have_no_node_keeps_a_claim_from_no_other_pod() -> None:
    lost = replace(pod("a"), scheduling=make.scheduling(claims=("data",), refusals=("why",)))
    assert refusals(lost, pod("b"))["b"] == ()
    assert refusals(pod("a", "data", "gone"), pod("b"))["b"] == ()


def test_a_running_pod_keeps_its_claim() -> None:
    (text,) = refusals(pod("a"), standing=(pod("z", node_name="n1"),))["a"]
    assert text.endswith("and shop/z has it")


def test_an_ebs_volume_named_by_the_pod_takes_an_attachment_in_its_zone() -> None:
    found = facts().demands_of(pod("a", f"aws-ebs:aws://{ZONE}/vol-1", "aws-ebs:vol-2"))
    assert found.problems == ()
    assert found.terms == (IN_ZONE,)
    assert [(use.driver, use.volume) for use in found.uses] == [
        (EBS_DRIVER, f"aws://{ZONE}/vol-1"),
        (EBS_DRIVER, "vol-2"),
    ]
    assert facts().volume_of("shop", "aws-ebs:vol-2") == (EBS_DRIVER, "vol-2")
    assert claims_of([pod("a", "aws-ebs:vol-2", "data")]) == {"shop/data"}


def test_volumes_without_a_driver_keep_to_one_zone_until_they_are_there() -> None:
    by_hand = storage_class("gp3") | {"provisioner": "kubernetes.io/no-provisioner"}
    free = volume("pv", in_zones(ZONE)) | {"status": {"phase": "Available"}}
    spec = {**free["spec"], "storageClassName": "gp3"}
    spec.pop("claimRef", None)
    found = resolved(facts(OPEN, by_hand, free | {"spec": spec}), pod("a"), pod("b"))
    assert [term.key for other_pod in found for term in other_pod.scheduling.ties] == [
        keys.ZONE
    ] * 2
