"""Reads the fields of NodePools and Provisioners about the lifetime of nodes, for timers.

It does not use the pydantic models: an object with a wrong field gets no new nodes, but its
existing nodes are removed as it says.

Source: https://karpenter.sh/docs/concepts/nodepools/ and .../disruption/ (2026-11).
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from shared.manifests.custom_resources.brakes import is_paused, is_shadow
from shared.manifests.custom_resources.node_budgets import annotated_budgets, read_budgets
from shared.manifests.custom_resources.triggers import read_triggers
from shared.manifests.nodes import decode_taint
from shared.manifests.raw_json import Raw, integer, mapping, mappings, text, text_map
from shared.manifests.spans import read_span
from shared.model import labels as keys
from shared.model.dialect import V1, WHEN_EMPTY
from shared.model.provisioner import Provisioner
from shared.model.values import replace

# A longer span is the same as none.
_MAX_SECONDS: Final = 100 * 365 * 24 * 3600


def is_foreign(raw: Raw) -> bool:
    """Return whether a NodePool names a node class of another provider."""
    group = text(_class_ref(raw).get("group")).partition("/")[0]
    return group not in ("", V1.template_group)


def named_class(raw: Raw) -> str:
    """Return the name of the EC2NodeClass that a NodePool names."""
    return text(_class_ref(raw).get("name"))


def names_in(value: str) -> frozenset[str]:
    """Return the names in a comma-separated list."""
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def read_lifetime(raw: Raw) -> Provisioner:
    """Return a NodePool without the fields that only launches need; an invalid span is None."""
    spec, shape = mapping(raw.get("spec")), _shape(raw)
    disruption = mapping(spec.get("disruption"))
    consolidates = disruption.get("consolidationPolicy") != WHEN_EMPTY
    # The nodes of a NodePool with a fixed number are not removed to save cost.
    fixed = spec.get("replicas") is not None
    after = None if fixed else _span(disruption.get("consolidateAfter"), timedelta(0))
    return replace(
        _owner(raw, shape),
        kind=V1.owner_kind,
        # Without consolidateAfter, consolidation itself removes empty nodes.
        ttl_after_empty=after if after or not consolidates else None,
        ttl_until_expired=_span(shape.get("expireAfter"), V1.expires_after),
        consolidation=consolidates and after is not None,
        termination_grace_period=_span(shape.get("terminationGracePeriod"), None),
        consolidate_after=(after or timedelta(0)) if consolidates else timedelta(0),
        budgets=read_budgets(disruption.get("budgets"), V1.budgets),
        as_karpenter=names_in(_annotations(raw).get(keys.AS_KARPENTER, "")),
    )


def read_provisioner_lifetime(raw: Raw) -> Provisioner:
    """Return a Provisioner without the fields that only launches need; an invalid span is None."""
    spec = mapping(raw.get("spec"))
    return replace(
        _owner(raw, spec),
        ttl_after_empty=_seconds(spec.get("ttlSecondsAfterEmpty")),
        ttl_until_expired=_seconds(spec.get("ttlSecondsUntilExpired")),
        consolidation=mapping(spec.get("consolidation")).get("enabled") is True,
        budgets=annotated_budgets(_annotations(raw)),
    )


def own_node_pools(pools: Iterable[Raw]) -> list[Raw]:
    """Return the NodePools that name an EC2NodeClass; others belong to another autoscaler."""
    return [raw for raw in pools if not is_foreign(raw)]


def read_lifetimes(provisioners: Iterable[Raw], pools: Iterable[Raw]) -> tuple[Provisioner, ...]:
    """Return Provisioners and NodePools without the fields that only launches need, by name.

    Where a Provisioner and a NodePool have the same name, the NodePool cannot be used.
    """
    owners = {pool.name: pool for pool in map(read_lifetime, pools)}
    owners |= {owner.name: owner for owner in map(read_provisioner_lifetime, provisioners)}
    return tuple(owners[name] for name in sorted(owners))


def _owner(raw: Raw, nodes: Raw) -> Provisioner:
    """Return what Provisioners and NodePools have in common.

    Args:
        nodes: The part of the object that has the taints of nodes.
    """
    metadata, annotations = mapping(raw.get("metadata")), _annotations(raw)
    return Provisioner(
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        generation=integer(metadata.get("generation")) or 0,
        taints=tuple(map(decode_taint, mappings(nodes.get("taints")))),
        startup_taints=tuple(map(decode_taint, mappings(nodes.get("startupTaints")))),
        deleting=metadata.get("deletionTimestamp") is not None,
        paused=is_paused(annotations),
        shadow=is_shadow(annotations),
        triggers=read_triggers(annotations),
    )


def _annotations(raw: Raw) -> dict[str, str]:
    return text_map(mapping(raw.get("metadata")).get("annotations"))


def _seconds(value: object) -> timedelta | None:
    seconds = integer(value)
    if seconds is None or not 0 <= seconds <= _MAX_SECONDS:
        return None
    return timedelta(seconds=seconds)


def _shape(raw: Raw) -> Raw:
    return mapping(mapping(mapping(raw.get("spec")).get("template")).get("spec"))


def _class_ref(raw: Raw) -> Raw:
    return mapping(_shape(raw).get("nodeClassRef"))


def _span(value: object, default: timedelta | None) -> timedelta | None:
    try:
        return default if value is None else read_span(value)
    except ValueError:
        return None
