"""The part of a cluster in memory that knows Provisioners, NodePools and what they name."""

from collections.abc import Mapping
from typing import Any

from shared.instance_types.ami_families import refuse_wrong_user_data, with_user_data_settings
from shared.manifests.custom_resources.node_classes import read_node_classes
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.owners import decode_owners
from shared.manifests.custom_resources.pool_lifetimes import own_node_pools
from shared.model.dialect import OwnerKind
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.ports import NodeClass, PoolStatus, TemplateStatus
from tests.fakes.storage import FakeStorage


def owner_key(kind: OwnerKind, name: str) -> str:
    """Return the key of a Provisioner, its name, or of a NodePool, which may have the same."""
    return name if kind == OwnerKind.PROVISIONER else f"{kind}/{name}"


class FakeProvisioners(FakeStorage):
    """Keeps Provisioners as values; those applied raw are read anew when a template changes."""

    def __init__(self) -> None:
        super().__init__()
        self.node_templates: dict[str, Mapping[str, Any]] = {}
        self.classes: dict[str, Mapping[str, Any]] = {}
        self.template_statuses: dict[str, TemplateStatus] = {}
        self.class_statuses: dict[str, TemplateStatus] = {}
        self._raw_provisioners: dict[str, Mapping[str, Any]] = {}
        self.pool_statuses: dict[str, PoolStatus] = {}
        self.provisioner_statuses: dict[str, PoolStatus] = {}
        self._raw_pools: dict[str, Mapping[str, Any]] = {}

    def apply_provisioner(
        self, raw: Mapping[str, Any]
    ) -> tuple[Provisioner | InvalidProvisioner, ...]:
        """Store an owner or what one names; return what it makes of all that were stored."""
        kept = {
            "Provisioner": self._raw_provisioners,
            "AWSNodeTemplate": self.node_templates,
            "NodePool": self._raw_pools,
            "EC2NodeClass": self.classes,
        }
        kept[raw["kind"]][raw["metadata"]["name"]] = raw
        usable, unusable = decode_owners(
            tuple(self._raw_provisioners.values()),
            self.node_templates.values(),
            own_node_pools(self._raw_pools.values()),
            lambda pool: decode_node_pool(pool, self.classes, check=refuse_wrong_user_data),
            check=refuse_wrong_user_data,
        )
        return (*map(with_user_data_settings, usable), *unusable)

    def node_classes(self) -> tuple[NodeClass, ...]:
        return tuple(
            NodeClass(name=name, template=found.template, problems=problems)
            for name, found, problems in read_node_classes(
                self.classes.values(), refuse_wrong_user_data
            )
        )

    def set_pool_status(
        self, name: str, status: PoolStatus, owner: OwnerKind = OwnerKind.NODE_POOL
    ) -> None:
        self._raise_planned("set_pool_status")
        if owner == OwnerKind.PROVISIONER:
            self.provisioner_statuses[name] = status
        elif name in self._raw_pools:
            self.pool_statuses[name] = status

    def set_template_status(
        self, name: str, status: TemplateStatus, owner: OwnerKind = OwnerKind.PROVISIONER
    ) -> None:
        self._raise_planned("set_template_status")
        of_pool = owner == OwnerKind.NODE_POOL
        known = self.classes if of_pool else self.node_templates
        told = self.class_statuses if of_pool else self.template_statuses
        if name in known:
            told[name] = status
