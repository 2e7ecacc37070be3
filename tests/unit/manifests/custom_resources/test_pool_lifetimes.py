"""How long nodes of a NodePool or Provisioner live, as timers read it."""

from datetime import timedelta
from typing import Any

import pytest

from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.custom_resources.owners import decode_owners
from shared.manifests.custom_resources.pool_lifetimes import (
    own_node_pools,
    read_lifetime,
    read_lifetimes,
    read_provisioner_lifetime,
)
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import Provisioner, owner_among
from shared.model.values import replace
from tests.builders import node
from tests.unit.manifests.documents import node_class, node_pool, provisioner

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    "raw",
    [
        node_pool(),
        node_pool({"expireAfter": "Never"}, disruption={"consolidateAfter": "Never"}),
        node_pool(
            {
                "taints": [{"key": "a", "value": "b", "effect": "NoExecute"}],
                "startupTaints": [{"key": "c", "effect": "NoSchedule"}],
                "expireAfter": "90m",
            },
            disruption={"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"},
        ),
    ],
)
def test_timers_and_launches_read_the_same(raw: Any) -> None:
    whole, lifetime = decode_node_pool(raw, by_name([node_class()])), read_lifetime(raw)
    launching = ("labels", "requirements", "kubelet", "template", "preference_policy")
    empty = Provisioner(name="")
    assert replace(whole, **{name: getattr(empty, name) for name in launching}) == lifetime
    assert set(Provisioner.__struct_fields__) > set(launching)


def test_timers_and_launches_read_the_same_of_a_provisioner() -> None:
    raw = provisioner(
        ttlSecondsAfterEmpty=30,
        ttlSecondsUntilExpired=3600,
        taints=[{"key": "a", "value": "b", "effect": "NoExecute"}],
        startupTaints=[{"key": "c", "effect": "NoSchedule"}],
        weight=3,
    )
    whole, lifetime = decode_provisioner(raw), read_provisioner_lifetime(raw)
    launching = ("labels", "requirements", "kubelet", "template", "preference_policy", "weight")
    empty = Provisioner(name="")
    assert replace(whole, **{name: getattr(empty, name) for name in launching}) == lifetime
    assert lifetime.ttl_after_empty == timedelta(seconds=30)
    assert lifetime.ttl_until_expired == 60 * MINUTE
    assert read_provisioner_lifetime(provisioner(consolidation={"enabled": True})).consolidation


@pytest.mark.parametrize("seconds", ["30", -1, True, 10**18])
def test_a_number_of_seconds_that_is_wrong_is_none(seconds: Any) -> None:
    assert (
        read_provisioner_lifetime(provisioner(ttlSecondsAfterEmpty=seconds)).ttl_after_empty is None
    )


@pytest.mark.parametrize("written", ["[", "{}", "[" + "{}," * 50 + "{}]"])
def test_budgets_that_cannot_be_read_block_all_removals(written: str) -> None:
    raw = provisioner()
    raw["metadata"]["annotations"] = {keys.DISRUPTION_BUDGETS: written}
    (budget,) = read_provisioner_lifetime(raw).budgets or ()
    assert budget.fault


def test_a_node_pool_with_the_name_of_a_provisioner_is_left_out() -> None:
    own, other = provisioner(), node_pool()
    other["metadata"] = {**other["metadata"], "name": own["metadata"]["name"]}
    assert [owner.kind for owner in read_lifetimes([own], [other])] == [OwnerKind.PROVISIONER]
    pool = {**other, "metadata": {**other["metadata"], "name": "a"}}
    assert [owner.name for owner in read_lifetimes([own], [pool])] == ["a", "default"]


def test_what_is_wrong_elsewhere_does_not_keep_nodes_from_being_removed() -> None:
    raw = node_pool({"expireAfter": "1h"}, replicas=3, disruption={"consolidateAfter": "1d"})
    found = read_lifetime(raw)
    assert found.ttl_until_expired == 60 * MINUTE
    assert (found.ttl_after_empty, found.consolidation) == (None, False)


def test_a_span_that_is_wrong_is_none() -> None:
    found = read_lifetime(node_pool({"expireAfter": "soon", "terminationGracePeriod": "a day"}))
    assert (found.ttl_until_expired, found.termination_grace_period) == (None, None)


def test_taints_that_are_wrong_are_read_as_they_stand_on_nodes() -> None:
    found = read_lifetime(node_pool({"startupTaints": [{"key": "a"}]}))
    assert found.startup_taints == (Taint(key="a", effect=Effect.NO_SCHEDULE),)


def test_pools_without_a_class_are_dovetails_to_refuse() -> None:
    raw = {"metadata": {"name": "x"}}
    assert own_node_pools([raw]) == [raw]
    classes = by_name([node_class()])
    usable, (refused,) = decode_owners(
        [provisioner()], (), [raw], lambda pool: decode_node_pool(pool, classes)
    )
    assert [owner.name for owner in usable] == ["default"]
    assert (refused.kind, refused.name, refused.template) == ("NodePool", "x", "")
    assert not refused.only_its_template


def test_a_node_has_its_owner_among_those_of_its_kind() -> None:
    pool = read_lifetime(node_pool())
    former = node()
    assert owner_among(former, {"default": pool}) is None
    assert owner_among(former, {}) is None
