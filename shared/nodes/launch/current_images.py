"""The images of running instances, and the images that instances in their place would get now."""

from collections.abc import Iterable, Sequence

from shared.disruption.evaluation import InstanceImages
from shared.model import labels as keys
from shared.model.ec2.image_table import ImageTable
from shared.model.ec2.instance_types import InstanceType
from shared.model.errors import PermanentError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner, owner_among
from shared.nodes.launch.ami_canary import ImageCanary
from shared.ports import ClusterPorts
from shared.snapshot.images import resolve_images
from shared.snapshot.node_facts import cluster_instances


def current_images(
    ports: ClusterPorts,
    owners: Iterable[Provisioner],
    nodes: Iterable[Node],
    instance_types: Sequence[InstanceType],
) -> InstanceImages:
    """Return the images of the nodes of some owners.

    Owners whose images cannot be resolved now are left out: no node has drifted because of that.
    """
    version, rollout = ports.cloud.endpoint().version, ImageCanary(ports)
    found: dict[str, tuple[Provisioner, ImageTable, dict[str, str]]] = {}
    for owner in owners:
        try:
            table = resolve_images(
                ports.cloud, owner.template, version, instance_types, owner.dialect
            )
        except PermanentError:
            continue
        found[owner.name] = owner, table, rollout.waiting_reasons(owner, table)
    instances = cluster_instances(ports) if found else ()
    booted = {instance.instance_id: instance.image_id for instance in instances}
    known = {name: owner for name, (owner, _, _) in found.items()}
    current, waits = {}, {}
    for node in nodes:
        if owner_among(node, known) is None:
            continue
        _, table, waiting = found[node.provisioner]
        current[node.instance_id] = table.of(node.labels.get(keys.INSTANCE_TYPE, "")) or ""
        waits[node.instance_id] = waiting.get(booted.get(node.instance_id, ""), "")
    return InstanceImages(of_instance=booted, current=current, waiting_reasons=waits)
