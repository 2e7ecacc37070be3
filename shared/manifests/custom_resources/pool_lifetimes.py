"""Reads the fields of a NodePool about the lifetime and disruption of nodes, for timers.

It does not use the pydantic models: a NodePool with a wrong field gets no new nodes, but its
existing nodes are removed as it says.

Source: https://karpenter.sh/docs/concepts/nodepools/ and .../disruption/ (2026-11).
"""

from datetime import timedelta

from shared.manifests.custom_resources.brakes import is_paused, is_shadow
from shared.manifests.custom_resources.node_budgets import read_budgets
from shared.manifests.custom_resources.triggers import read_triggers
from shared.manifests.nodes import decode_taint
from shared.manifests.raw_json import Raw, integer, mapping, mappings, text, text_map
from shared.manifests.spans import read_span
from shared.model import labels as keys
from shared.model.dialect import V1, WHEN_EMPTY
from shared.model.provisioner import Provisioner


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
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    shape, disruption = _shape(raw), mapping(spec.get("disruption"))
    annotations = text_map(metadata.get("annotations"))
    consolidates = disruption.get("consolidationPolicy") != WHEN_EMPTY
    # The nodes of a NodePool with a fixed number are not removed to save cost.
    fixed = spec.get("replicas") is not None
    after = None if fixed else _span(disruption.get("consolidateAfter"), timedelta(0))
    return Provisioner(
        name=text(metadata.get("name")),
        kind=V1.owner_kind,
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        generation=integer(metadata.get("generation")) or 0,
        taints=tuple(map(decode_taint, mappings(shape.get("taints")))),
        startup_taints=tuple(map(decode_taint, mappings(shape.get("startupTaints")))),
        # Without consolidateAfter, consolidation itself removes empty nodes.
        ttl_after_empty=after if after or not consolidates else None,
        ttl_until_expired=_span(shape.get("expireAfter"), V1.expires_after),
        consolidation=consolidates and after is not None,
        termination_grace_period=_span(shape.get("terminationGracePeriod"), None),
        consolidate_after=(after or timedelta(0)) if consolidates else timedelta(0),
        budgets=read_budgets(disruption.get("budgets"), V1.budgets),
        deleting=metadata.get("deletionTimestamp") is not None,
        paused=is_paused(annotations),
        shadow=is_shadow(annotations),
        as_karpenter=names_in(annotations.get(keys.AS_KARPENTER, "")),
        triggers=read_triggers(annotations),
    )


def _shape(raw: Raw) -> Raw:
    return mapping(mapping(mapping(raw.get("spec")).get("template")).get("spec"))


def _class_ref(raw: Raw) -> Raw:
    return mapping(_shape(raw).get("nodeClassRef"))


def _span(value: object, default: timedelta | None) -> timedelta | None:
    try:
        return default if value is None else read_span(value)
    except ValueError:
        return None
