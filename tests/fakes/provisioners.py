"""The part of a cluster in memory that knows Provisioners and AWSNodeTemplates."""

from collections.abc import Mapping
from typing import Any

from shared.ami_families import refuse_wrong_user_data
from shared.manifests.custom_resources.provisioners import decode_provisioners
from shared.model.provisioner import Provisioner
from shared.model.snapshot import InvalidProvisioner
from shared.ports import TemplateStatus
from tests.fakes.storage import FakeStorage


class FakeProvisioners(FakeStorage):
    """Keeps Provisioners as values; those applied raw are read anew when a template changes."""

    def __init__(self) -> None:
        super().__init__()
        self.node_templates: dict[str, Mapping[str, Any]] = {}
        self.template_statuses: dict[str, TemplateStatus] = {}
        self._raw_provisioners: dict[str, Mapping[str, Any]] = {}

    def apply_provisioner(
        self, raw: Mapping[str, Any]
    ) -> tuple[Provisioner | InvalidProvisioner, ...]:
        """Store a Provisioner or an AWSNodeTemplate; return what it makes of all that were."""
        kept = self._raw_provisioners if raw["kind"] == "Provisioner" else self.node_templates
        kept[raw["metadata"]["name"]] = raw
        usable, unusable = decode_provisioners(
            self._raw_provisioners.values(),
            self.node_templates.values(),
            check=refuse_wrong_user_data,
        )
        return (*usable, *unusable)

    def set_template_status(self, name: str, status: TemplateStatus) -> None:
        self._raise_planned("set_template_status")
        if name in self.node_templates:
            self.template_statuses[name] = status
