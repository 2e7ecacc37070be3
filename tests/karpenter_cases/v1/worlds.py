"""Machines launched for pods by NodePools as people write them, and what EC2 was asked for."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from tests.builders import CATALOG, instance, node, offering, pod
from tests.karpenter_cases.lifecycle.births import applied, bought
from tests.unit.manifests.documents import node_class, node_pool, wants
from tests.unit.worlds import World

AMD = wants("kubernetes.io/arch", "In", "amd64")
ON_DEMAND = wants("karpenter.sh/capacity-type", "In", "on-demand")


def named_pool(
    name: str = "default",
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a NodePool of amd64 machines on demand unless its `spec` asks for others."""
    raw = node_pool(
        {"requirements": [AMD, ON_DEMAND], **(spec or {})}, dict(metadata or {}), **more
    )
    return {**raw, "metadata": {**raw["metadata"], "name": name, "uid": f"uid-{name}"}}


def changed_class(**spec: Any) -> dict[str, Any]:
    """Return the EC2NodeClass `nodes` with other fields; one that is None is left out."""
    raw = node_class()
    given = {**raw["spec"], **spec}
    return {**raw, "spec": {field: value for field, value in given.items() if value is not None}}


def world(*raws: Mapping[str, Any], types: Iterable[InstanceType] = CATALOG) -> World:
    """Return a world with these manifests; an EC2NodeClass `nodes` is there unless one is given."""
    return applied(raws, node_class(), types)


def launched(spec: Mapping[str, Any] | None = None, **of_class: Any) -> World:
    """Buy for one pod with a NodePool and an EC2NodeClass of these fields."""
    return bought(world(named_pool(spec=spec), changed_class(**of_class)))


def apart(count: int, **more: Any) -> tuple[Pod, ...]:
    """Return pods of which a machine of two cores holds one."""
    return tuple(pod(f"p{number}", cpu=1800, **more) for number in range(count))


def is_ready(there: World, name: str = "default") -> bool:
    """Let provision report; return whether a NodePool says that it is ready."""
    there.provisioning().report_provisioners()
    return there.cluster.conditions[f"NodePool/{name}"][0]


def stand(there: World, name: str = "n1", **changes: Any) -> Node:
    """Let an initialized node of the NodePool `default` stand, and its machine run."""
    labels = {
        key: value for key, value in node(name).labels.items() if key != keys.PROVISIONER_NAME
    }
    labels |= {keys.NODE_POOL: "default", keys.INITIALIZED: "true", **changes.pop("labels", {})}
    annotations = {keys.SLOT: f"slot-{name}", **changes.pop("annotations", {})}
    there.cluster.add(node(name, labels=labels, annotations=annotations, **changes))
    kind = offering(labels[keys.INSTANCE_TYPE])
    there.cloud.add(instance(f"i-{name}", offering=kind))
    return there.cluster.node_values[name]
