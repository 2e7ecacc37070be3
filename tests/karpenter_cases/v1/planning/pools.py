"""NodePools of all types, and what is planned for pods where they stand."""

from collections.abc import Mapping
from typing import Any

from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from tests.karpenter_cases.scheduling.outcome import Outcome, solve
from tests.karpenter_cases.scheduling.writing import Expression, pod, wants
from tests.karpenter_cases.v1.reading import CLASSES
from tests.unit.manifests.documents import node_pool

BESIDE = ("disruption", "limits", "weight")


def pool(
    name: str = "default",
    *requirements: Expression,
    labels: Mapping[str, str] | None = None,
    least: Mapping[str, int] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Provisioner:
    """Return a NodePool that its document allows, as planners see it.

    Args:
        requirements: As key, operator and values.
        least: `minValues` of requirements, by key.
        metadata: Of the object itself.
        spec: What is neither beside the template nor here is of the template's spec.
    """
    asked: list[dict[str, Any]] = [wants(*entry) for entry in requirements]
    for requirement in asked:
        if requirement["key"] in (least or {}):
            requirement["minValues"] = (least or {})[requirement["key"]]
    beside = {field: spec.pop(field) for field in BESIDE if field in spec}
    raw = node_pool(
        {"requirements": asked, **spec}, {"labels": dict(labels)} if labels else None, **beside
    )
    raw["metadata"] |= {"name": name, "uid": f"uid-{name}", **(metadata or {})}
    return decode_node_pool(raw, CLASSES)


def planned(*waiting: Pod, pools: tuple[Provisioner, ...] = (), **more: Any) -> Outcome:
    """Decide about pods where these NodePools stand, or one of all types."""
    return solve(*waiting, provisioners=pools or (pool(),), **more)


def one(words: Mapping[str, Any] | None = None, **more: Any) -> Outcome:
    """Decide about one pod called `a`."""
    return planned(pod(**(words or {})), **more)
