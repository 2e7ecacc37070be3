from typing import Any

import pytest

from shared.manifests.volumes.node_demands import VolumeDemands
from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import EBS_DRIVER, Claim, attachable
from shared.model.requirements import Requirements
from tests import builders as make
from tests.unit.manifests.volumes.storage_documents import (
    OTHER_ZONE,
    ZONE,
    claim,
    in_zones,
    storage_class,
    volume,
)
from tests.unit.manifests.volumes.volume_facts import facts, pod

IN_ZONE = make.needs(keys.ZONE, "In", ZONE)
IN_BOTH = make.needs(keys.ZONE, "In", ZONE, OTHER_ZONE)
EBS = attachable(EBS_DRIVER)


def terms_of(
    *raws: dict[str, Any], claims: tuple[str, ...] = ("data",)
) -> tuple[Requirements, ...]:
    asked = facts(*raws).demands_of(pod("a", *claims))
    assert asked.problems == ()
    return asked.terms


def problem(*raws: dict[str, Any], of: Pod | None = None) -> str:
    (found,) = facts(*raws).demands_of(of or pod()).problems
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


def test_volumes_made_by_hand_are_used_in_the_zone_of_a_free_one() -> None:
    local = storage_class("gp3", provisioner="kubernetes.io/no-provisioner")
    on_node = in_zones("n1", key=keys.HOSTNAME)
    free = volume("free", on_node, storageClassName="gp3")
    taken = volume("taken", in_zones(ZONE), storageClassName="gp3", claimRef={"name": "x"})
    other = volume("other", storageClassName="else")
    asked_for = make.needs(keys.HOSTNAME, "In", "n1")
    assert terms_of(OPEN, local, free, taken, other) == (asked_for,)
    assert terms_of(OPEN, local, free, volume("any", storageClassName="gp3")) == ()
    assert "no volume of class gp3 is free" in problem(OPEN, local, taken)
    assert facts(OPEN, local, complete=False).demands_of(pod()) == VolumeDemands(
        uses=facts(OPEN, local, complete=False).demands_of(pod()).uses
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


def test_volumes_in_different_zones_leave_no_node() -> None:
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
    def asked(*raws: dict[str, Any]) -> VolumeDemands:
        return facts(*raws, complete=False).demands_of(pod())

    assert asked().unknown == ("data",)
    for raws in ((BOUND,), (OPEN,), (claim(),)):
        found = asked(*raws)
        assert (found.terms, found.problems, found.unknown) == ((), (), ())
    at_once = storage_class("gp3", ZONE, volumeBindingMode="Immediate")
    assert asked(OPEN, at_once).terms == (IN_ZONE,)


def test_in_files_a_claim_that_waits_in_a_cluster_already_is_a_reason_for_its_pod() -> None:
    def asked(*raws: dict[str, Any]) -> VolumeDemands:
        return facts(*raws, complete=False).demands_of(pod())

    waits: Any = {"status": {"phase": "Pending"}}
    no_class = {"storageClassName": ""}
    at_once = storage_class("gp3", volumeBindingMode="Immediate")
    assert "waits for its volume" in asked({**OPEN, **waits}, at_once).problems[0]
    assert "nor storage class" in asked(claim(spec=no_class, **waits)).problems[0]
    by_hand = {**at_once, "provisioner": "kubernetes.io/no-provisioner"}
    free = volume("free", in_zones(ZONE), storageClassName="")
    for raws in (
        (OPEN, at_once),
        ({**OPEN, **waits}, by_hand),
        ({**OPEN, **waits},),
        (claim(spec=no_class),),
    ):
        assert asked(*raws).problems == ()
    assert asked(claim(spec=no_class, **waits), free).terms == (IN_ZONE,)


def test_an_ephemeral_volume_asks_by_its_template_until_its_claim_is_made() -> None:
    to_be = Claim(namespace="shop", name="a-tmp", storage_class="gp3")
    own = pod("a", "a-tmp", ephemeral=(to_be,), uid="u1")
    there = storage_class("gp3", ZONE)
    assert facts(there).demands_of(own).terms == (IN_ZONE,)
    reference = {"kind": "Pod", "name": "a", "uid": "u1", "controller": True}
    made = claim(
        "a-tmp",
        spec={"volumeName": "pv"},
        metadata={"ownerReferences": [reference]},
    )
    assert facts(made, volume("pv", in_zones(OTHER_ZONE))).demands_of(own).problems == ()
    strange = claim("a-tmp", spec={"volumeName": "pv"})
    assert "was not made for this pod" in problem(strange, of=own)
    assert facts(strange, complete=False).demands_of(own).problems == ()


def test_the_volume_of_a_claim_is_found() -> None:
    found = facts(BOUND, volume("pv"), OPEN | {"metadata": {"namespace": "shop", "name": "open"}})
    assert found.volume_of("shop", "data") == (EBS_DRIVER, "pv")
    assert found.volume_of("shop", "open") == ("", "")
    assert found.volume_of("shop", "none") == ("", "")


def test_drivers_are_those_that_attach_something() -> None:
    nfs = claim("nfs", spec={"volumeName": "share"})
    found = facts(BOUND, volume("pv"), nfs, volume("share", csi=None, nfs={"server": "s"}))
    assert found.drivers([pod(), pod("b", "nfs"), make.pod("c")]) == {EBS_DRIVER}
