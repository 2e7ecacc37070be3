"""How long nodes of a NodePool live, as timers read it."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.custom_resources.owners import decode_owners, own_node_pools
from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import Provisioner, owner_among
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
    assert {field.name for field in fields(Provisioner)} > set(launching)


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
