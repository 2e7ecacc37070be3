from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from shared.manifests.resolving import resolve
from shared.manifests.storage import decode_claim, decode_storage_class, decode_volume
from shared.manifests.volumes import Asked, Volumes
from shared.model import labels as keys
from shared.model.pods import Pod
from shared.model.requirements import Requirements
from shared.model.volumes import EBS_DRIVER, RESOLVED, Claim, attachable
from shared.scheduling.binding import needs_scheduler
from tests import builders as make
from tests.unit.manifests.storage_documents import (
    OTHER_ZONE,
    ZONE,
    claim,
    in_zones,
    storage_class,
    volume,
)

IN_ZONE = make.needs(keys.ZONE, "In", ZONE)
IN_BOTH = make.needs(keys.ZONE, "In", ZONE, OTHER_ZONE)
EBS = attachable(EBS_DRIVER)


def facts(*raws: dict[str, Any], complete: bool = True) -> Volumes:
    def of(kind: str) -> Iterable[dict[str, Any]]:
        return (one for one in raws if one["kind"] == kind)

    return Volumes(
        map(decode_claim, of("PersistentVolumeClaim")),
        map(decode_volume, of("PersistentVolume")),
        map(decode_storage_class, of("StorageClass")),
        complete=complete,
    )


def pod(name: str = "a", *claims: str, **fields: Any) -> Pod:
    scheduling = make.scheduling(claims=claims or ("data",))
    return replace(make.pod(name), namespace="shop", scheduling=scheduling, **fields)


def terms_of(
    *raws: dict[str, Any], claims: tuple[str, ...] = ("data",)
) -> tuple[Requirements, ...]:
    asked = facts(*raws).asked(pod("a", *claims))
    assert asked.problems == ()
    return asked.terms


def problem(*raws: dict[str, Any], of: Pod | None = None) -> str:
    (found,) = facts(*raws).asked(of or pod()).problems
    return found


BOUND = claim(spec={"volumeName": "pv"})
OPEN = claim(spec={"storageClassName": "gp3"})


def test_a_bound_claim_asks_for_any_place_its_volume_can_be_used_at() -> None:
    assert terms_of(BOUND, volume("pv", in_zones(ZONE))) == (IN_ZONE,)
    assert terms_of(BOUND, volume("pv", in_zones(ZONE), in_zones(OTHER_ZONE))) == (IN_BOTH,)
    assert terms_of(BOUND, volume("pv", csi=None, nfs={"server": "s"})) == ()


def test_an_open_claim_asks_for_where_its_class_may_make_volumes() -> None:
    assert terms_of(OPEN, storage_class("gp3", ZONE)) == (IN_ZONE,)
    assert terms_of(OPEN, storage_class("gp3")) == ()


def test_a_claim_without_a_class_gets_the_newest_default() -> None:
    classes = [
        storage_class(
            name,
            zone,
            metadata={
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                "creationTimestamp": f"2026-01-0{day}T00:00:00Z",
            },
        )
        for name, zone, day in (("new", ZONE, 2), ("old", OTHER_ZONE, 1))
    ]
    assert terms_of(claim(), *classes) == (IN_ZONE,)


def test_volumes_made_by_hand_are_used_where_a_free_one_stands() -> None:
    local = storage_class("gp3", provisioner="kubernetes.io/no-provisioner")
    on_node = in_zones("n1", key=keys.HOSTNAME)
    free = volume("free", on_node, storageClassName="gp3")
    taken = volume("taken", in_zones(ZONE), storageClassName="gp3", claimRef={"name": "x"})
    other = volume("other", storageClassName="else")
    asked_for = make.needs(keys.HOSTNAME, "In", "n1")
    assert terms_of(OPEN, local, free, taken, other) == (asked_for,)
    assert terms_of(OPEN, local, free, volume("any", storageClassName="gp3")) == ()
    assert "no volume of class gp3 is free" in problem(OPEN, local, taken)
    assert facts(OPEN, local, complete=False).asked(pod()) == Asked(
        uses=facts(OPEN, local, complete=False).asked(pod()).uses
    )


@pytest.mark.parametrize(
    ("raws", "words"),
    [
        ((), "claim shop/data does not exist: create it"),
        ((BOUND,), "names volume pv, which is not there"),
        ((claim(status={"phase": "Lost"}, spec={"volumeName": "pv"}),), "has lost its volume pv"),
        ((claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),), "is being deleted"),
        ((OPEN,), "names storage class gp3, which does not exist"),
        ((claim(),), "has neither volume nor storage class"),
        ((claim(spec={"storageClassName": ""}),), "has neither volume nor storage class"),
        ((OPEN, storage_class(volumeBindingMode="Immediate")), "still waits for its volume"),
        ((BOUND, volume("pv", {"matchFields": [{}]})), "pv: node affinity: matchFields"),
    ],
)
def test_a_claim_that_no_node_can_help_is_a_reason_for_its_pod(
    raws: tuple[dict[str, Any], ...], words: str
) -> None:
    text = problem(*raws)
    assert text.startswith("volume: ")
    assert words in text


def test_volumes_that_stand_apart_leave_no_node() -> None:
    raws = [
        *(claim(name, spec={"volumeName": f"pv-{name}"}) for name in ("a", "b")),
        volume("pv-a", in_zones(ZONE)),
        volume("pv-b", in_zones(OTHER_ZONE)),
    ]
    both = pod("p", "a", "b")
    assert problem(*raws, of=both) == (
        "volume: no node can have all of them: they differ about topology.kubernetes.io/zone"
    )


def test_terms_of_many_volumes_are_put_together() -> None:
    arm = make.needs(keys.ARCH, "In", "arm64")
    with_arch = (
        in_zones(ZONE)["matchExpressions"] + in_zones("arm64", key=keys.ARCH)["matchExpressions"]
    )
    raws = [
        *(claim(name, spec={"volumeName": f"pv-{name}"}) for name in ("a", "b")),
        volume("pv-a", in_zones(ZONE), in_zones(OTHER_ZONE), in_zones("arm64", key=keys.ARCH)),
        volume("pv-b", {"matchExpressions": with_arch}),
    ]
    assert terms_of(*raws, claims=("a", "b")) == (arm.merge(IN_ZONE),)


def test_too_many_alternatives_are_refused() -> None:
    terms = [in_zones(f"v{number}", key="example.com/rack") for number in range(300)]
    assert "more than 256 alternatives" in problem(BOUND, volume("pv", *terms))


def test_files_leave_open_what_they_do_not_say() -> None:
    def asked(*raws: dict[str, Any]) -> Asked:
        return facts(*raws, complete=False).asked(pod())

    assert asked().unknown == ("data",)
    for raws in ((BOUND,), (OPEN,), (claim(),)):
        found = asked(*raws)
        assert (found.terms, found.problems, found.unknown) == ((), (), ())
    at_once = storage_class("gp3", ZONE, volumeBindingMode="Immediate")
    assert asked(OPEN, at_once).terms == (IN_ZONE,)


def test_an_ephemeral_volume_asks_by_its_template_until_its_claim_is_made() -> None:
    to_be = Claim(namespace="shop", name="a-tmp", storage_class="gp3")
    own = pod("a", "a-tmp", ephemeral=(to_be,), uid="u1")
    there = storage_class("gp3", ZONE)
    assert facts(there).asked(own).terms == (IN_ZONE,)
    reference = {"kind": "Pod", "name": "a", "uid": "u1", "controller": True}
    made = claim(
        "a-tmp",
        spec={"volumeName": "pv"},
        metadata={"ownerReferences": [reference]},
    )
    assert facts(made, volume("pv", in_zones(OTHER_ZONE))).asked(own).problems == ()
    strange = claim("a-tmp", spec={"volumeName": "pv"})
    assert "was not made for this pod" in problem(strange, of=own)
    assert facts(strange, complete=False).asked(own).problems == ()


def test_the_volume_of_a_claim_is_found() -> None:
    found = facts(BOUND, volume("pv"), OPEN | {"metadata": {"namespace": "shop", "name": "open"}})
    assert found.volume_of("shop", "data") == (EBS_DRIVER, "pv")
    assert found.volume_of("shop", "open") == ("", "")
    assert found.volume_of("shop", "none") == ("", "")


def test_drivers_are_those_that_attach_something() -> None:
    nfs = claim("nfs", spec={"volumeName": "share"})
    found = facts(BOUND, volume("pv"), nfs, volume("share", csi=None, nfs={"server": "s"}))
    assert found.drivers([pod(), pod("b", "nfs"), make.pod("c")]) == {EBS_DRIVER}


# --- resolving


def resolved(found: Volumes, *pods: Pod, standing: tuple[Pod, ...] = ()) -> tuple[Pod, ...]:
    return resolve(found, pods, standing, {EBS_DRIVER})[0]


def attached(found: Volumes, *pods: Pod, standing: tuple[Pod, ...] = ()) -> list[int]:
    return [one.scheduling.requests[EBS] for one in resolved(found, *pods, standing=standing)]


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
    assert len({id(one.scheduling) for one in found}) == 1


def test_pods_of_a_claim_of_one_node_stay_together_and_attach_it_once() -> None:
    facts_ = facts(OPEN, storage_class())
    pods = [pod(name) for name in ("a", "b", "c")]
    assert attached(facts_, *pods) == [1, 0, 0]
    for one in resolved(facts_, *pods):
        (term,) = one.scheduling.affinity
        assert (term.key, term.namespaces, term.weight) == (keys.HOSTNAME, ("shop",), None)
        assert term.selector is not None
        assert term.selector.selects(one.labels)
        assert not term.selector.selects(pod().labels)


def test_a_pod_that_has_a_node_draws_the_others_of_its_claim() -> None:
    there = pod("z", node_name="n1")
    found, (marked,) = resolve(facts(OPEN, storage_class()), [pod()], [there], {EBS_DRIVER})
    (term,) = found[0].scheduling.affinity
    assert term.selector is not None
    assert term.selector.selects(marked.labels)
    assert marked.scheduling is there.scheduling
    assert found[0].scheduling.requests[EBS] == 0


def test_a_claim_of_many_nodes_is_counted_for_each_pod_and_keeps_to_a_zone_at_first() -> None:
    unbound = resolved(facts(SHARED, storage_class()), pod("a"), pod("b"))
    assert [one.scheduling.requests[EBS] for one in unbound] == [1, 1]
    assert [term.key for one in unbound for term in one.scheduling.affinity] == [keys.ZONE] * 2
    bound = claim(spec={"volumeName": "pv", "accessModes": ["ReadWriteMany"]})
    free = resolved(facts(bound, volume("pv")), pod("a"), pod("b"))
    assert [one.scheduling.affinity for one in free] == [(), ()]
    assert [one.scheduling.requests[EBS] for one in free] == [1, 1]


def test_drivers_without_a_limit_are_not_counted_and_keep_nobody_together() -> None:
    (first, second), _ = resolve(facts(OPEN, storage_class()), [pod("a"), pod("b")], [])
    assert first.scheduling is second.scheduling
    assert first.scheduling.requests == make.scheduling().requests
    assert first.scheduling.affinity == ()
