"""The Cluster port over one API server."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from typing_extensions import override

from shared.instance_types.ami_families import refuse_wrong_user_data, with_user_data_settings
from shared.kube.api import MERGE_PATCH, KubeApi, path_to, raise_unless_ok
from shared.kube.conditions import (
    CONDITION_STATUS,
    condition,
    owner_conditions,
    pool_status,
    status_patch,
    with_conditions,
)
from shared.kube.full_provisioners import KubeFullProvisioners
from shared.kube.kept import decoding
from shared.kube.kept.copy import SMALL, KeptCopy
from shared.kube.kept.feed import KubeFeed
from shared.kube.kept.state import KeptState
from shared.kube.kept.stored import CopyStoreFactory, no_copy_store
from shared.kube.nodes import NODES_PATH, PODS_PATH, KubeNodes
from shared.kube.provisioners import (
    NODE_CLASSES_PATH,
    NODE_POOLS_PATH,
    NODE_TEMPLATES_PATH,
    PROVISIONERS_PATH,
    utc_now,
)
from shared.kube.storage import KubeStorage
from shared.manifests.daemonsets import decode_daemonsets, names_runtime_class
from shared.manifests.nodes import decode_node
from shared.manifests.raw_json import Raw, mapping
from shared.model.dialect import BY_KIND, V1, OwnerKind
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.ports import (
    Cluster,
    ConditionType,
    FoundImage,
    NodeClass,
    PoolStatus,
    Subnet,
    TemplateStatus,
)
from shared.ports.cluster import EachPage, nothing

DAEMONSETS_PATH: Final = "/apis/apps/v1/daemonsets"
RUNTIMES_PATH: Final = "/apis/node.k8s.io/v1/runtimeclasses"
_BOUND: Final = (("fieldSelector", "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"),)
_READY: Final = "Ready"
_OWNER_PATHS: Final[Mapping[OwnerKind, str]] = {
    OwnerKind.PROVISIONER: PROVISIONERS_PATH,
    OwnerKind.NODE_POOL: NODE_POOLS_PATH,
}
_TEMPLATE_PATHS: Final[Mapping[OwnerKind, str]] = {
    OwnerKind.PROVISIONER: NODE_TEMPLATES_PATH,
    OwnerKind.NODE_POOL: NODE_CLASSES_PATH,
}


class KubeCluster(KubeFullProvisioners, KubeNodes, KubeStorage, Cluster):
    """Implements shared.ports.Cluster; further arguments are those of KubeNodes.

    It reads whole clusters: bound pods and nodes are kept from one reading to the next.

    Args:
        copy_store_of: Returns the store of a copy that outlives processes.
        small: A collection with fewer objects is listed each time.
    """

    def __init__(
        self,
        name: str,
        api: KubeApi,
        *,
        now: Callable[[], datetime] = utc_now,
        copy_store_of: CopyStoreFactory = no_copy_store,
        small: int = SMALL,
    ) -> None:
        super().__init__(name, api, now=now)
        decode = self._decoder.decode
        pods = KubeFeed(api, PODS_PATH, decode, _BOUND, decode=decoding.POD_PAGE_DECODER)
        nodes = KubeFeed(api, NODES_PATH, decode_node, decode=decoding.NODE_PAGE_DECODER)
        self._kept = KeptState(
            KeptCopy(pods, lambda pod: (pod.key, pod.uid), now, small, copy_store_of("pods", Pod)),
            KeptCopy(nodes, lambda node: node.name, now, small, copy_store_of("nodes", Node)),
            self.pods_on,
            self.node,
        )

    @override
    def bound_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        return self._kept.bound_pods(each_page)

    @override
    def nodes(self, each_page: EachPage = nothing) -> tuple[Node, ...]:
        return self._kept.nodes(each_page)

    @override
    def leave_copies(self) -> bool:
        return self._kept.save()

    @override
    def daemonsets(self) -> tuple[DaemonSet, ...]:
        raws = self._list(DAEMONSETS_PATH)
        runtimes = self._list(RUNTIMES_PATH) if names_runtime_class(raws) else ()
        return decode_daemonsets(raws, runtimes, self._decoder.scheduling)

    @override
    def provisioners(self) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
        """Provisioners have the settings of nodes that user data adds."""
        usable, refused = super().provisioners()
        return tuple(map(with_user_data_settings, usable)), refused

    def _check_user_data(self, family: str, custom: str) -> None:
        refuse_wrong_user_data(family, custom)

    def _pool_reader(self) -> Callable[[Raw], Provisioner]:
        # The models take 40 ms to import: clusters without NodePools do not need these.
        from shared.manifests.custom_resources.node_pools import (  # noqa: PLC0415 -- see above
            decode_node_pool,
        )
        from shared.manifests.custom_resources.node_templates import (  # noqa: PLC0415 -- see above
            by_name,
        )

        classes = by_name(self._defined(NODE_CLASSES_PATH) or ())
        return lambda raw: decode_node_pool(raw, classes, check=self._check_user_data)

    @override
    def set_provisioner_condition(
        self,
        name: str,
        *,
        active: bool,
        reason: str,
        message: str,
        kind: ConditionType = ConditionType.ACTIVE,
        owner: OwnerKind = OwnerKind.PROVISIONER,
    ) -> None:
        path = path_to(_OWNER_PATHS[owner], name)
        raw = self._find(path)
        if raw is None:
            return
        said = {"reason": reason, "message": message}
        body = owner_conditions(raw, owner, kind, said, holds=active, at=self._now())
        self._patch_status(path, body, f"condition of {owner.lower()} {name}")

    @override
    def node_classes(self) -> tuple[NodeClass, ...]:
        raws = self._defined(NODE_CLASSES_PATH)
        if not raws:
            return ()
        from shared.manifests.custom_resources.node_classes import (  # noqa: PLC0415 -- see above
            read_node_classes,
        )

        return tuple(
            NodeClass(name=name, template=found.template, problems=problems)
            for name, found, problems in read_node_classes(raws, self._check_user_data)
        )

    @override
    def set_pool_status(
        self, name: str, status: PoolStatus, owner: OwnerKind = OwnerKind.NODE_POOL
    ) -> None:
        path = path_to(_OWNER_PATHS[owner], name)
        raw = self._find(path)
        if raw is not None:
            body = pool_status(raw, owner, status, at=self._now())
            self._patch_status(path, body, f"status of {owner.lower()} {name}")

    @override
    def set_template_status(
        self, name: str, status: TemplateStatus, owner: OwnerKind = OwnerKind.PROVISIONER
    ) -> None:
        path = path_to(_TEMPLATE_PATHS[owner], name)
        raw = self._find(path)
        if raw is not None:
            body = _template_status(raw, owner, status, at=self._now())
            self._patch_status(path, body, f"status of {BY_KIND[owner].template_kind} {name}")

    def _patch_status(self, path: str, body: Mapping[str, Any] | None, about: str) -> None:
        if body is None:
            return
        reply = self._api.send("PATCH", f"{path}/status", body=body, content_type=MERGE_PATCH)
        if reply.status != 404:
            raise_unless_ok(reply, about)


def _template_status(
    raw: Mapping[str, Any], owner: OwnerKind, status: TemplateStatus, *, at: datetime
) -> dict[str, Any] | None:
    """Return the status patch of an AWSNodeTemplate or EC2NodeClass, None when nothing differs.

    Args:
        raw: The document as read.
        owner: The kind of the owners that name it.
        at: The current time: its lastTransitionTime if a condition changes.
    """
    wanted: dict[str, Any] = {
        "subnets": [{"id": subnet.subnet_id, "zone": subnet.zone} for subnet in status.subnets],
        "securityGroups": [{"id": security_group} for security_group in status.security_groups],
        "amis": list(map(_shown_image, status.images)),
    }
    said = {
        "reason": "NotResolved" if status.problems else "Resolved",
        "message": "; ".join(status.problems) or "instances can be launched with it",
    }
    needed = [condition(_READY, CONDITION_STATUS[not status.problems], **said)]
    if owner == V1.owner_kind:
        wanted["subnets"] = [_subnet_of_class(subnet) for subnet in status.subnets]
        wanted["amis"] = [
            {**_shown_image(image), **({"deprecated": True} if image.deprecated else {})}
            for image in status.images
        ]
        wanted["instanceProfile"] = status.instance_profile
        needed += _parts_of_class(status)
    known = mapping(raw.get("status"))
    changed: dict[str, Any] = {
        key: value for key, value in wanted.items() if known.get(key, "") != value
    }
    conditions = with_conditions(raw, needed, at, generation=owner == V1.owner_kind)
    if conditions is not None:
        changed["conditions"] = conditions
    return status_patch(raw, changed) if changed else None


def _shown_image(image: FoundImage) -> dict[str, Any]:
    requirements: list[dict[str, Any]] = [
        *({"key": key, "operator": "In", "values": [value]} for key, value in image.labels.items()),
        *({"key": key, "operator": "Exists"} for key in image.has),
        *({"key": key, "operator": "DoesNotExist"} for key in image.lacks),
    ]
    # Karpenter's order: short keys first.
    requirements.sort(key=lambda entry: (len(entry["key"]), entry["key"]))
    return {"id": image.image_id, "name": image.name, "requirements": requirements}


def _subnet_of_class(subnet: Subnet) -> dict[str, str]:
    known = {"id": subnet.subnet_id, "zone": subnet.zone}
    return {**known, "zoneID": subnet.zone_id} if subnet.zone_id else known


def _parts_of_class(status: TemplateStatus) -> list[dict[str, Any]]:
    """Return the conditions that Ready of an EC2NodeClass depends on.

    Source: https://karpenter.sh/docs/concepts/nodeclasses/#statusconditions (2026-11).
    """
    said = "; ".join(status.problems)
    if status.invalid:
        return [condition("ValidationSucceeded", "False", "ValidationFailed", said)]
    no_images = "UnsupportedAlias" if status.unsupported_alias else "AMINotFound"
    parts = (
        ("SubnetsReady", bool(status.subnets), "SubnetsNotFound"),
        ("SecurityGroupsReady", bool(status.security_groups), "SecurityGroupsNotFound"),
        ("AMIsReady", bool(status.images), no_images),
        ("InstanceProfileReady", bool(status.instance_profile), "InstanceProfileNotFound"),
    )
    found = [
        condition(kind, CONDITION_STATUS[holds], kind if holds else why, "" if holds else said)
        for kind, holds, why in ((kind, holds or not said, why) for kind, holds, why in parts)
    ]
    kind = "ValidationSucceeded"
    if said:
        return [condition(kind, "False", "DependenciesNotReady", said), *found]
    return [condition(kind, "True", kind, ""), *found]
