"""Launch templates: their own tags stay on them, lists have pages, missing ones are errors."""

from collections.abc import Sequence
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.launch_templates import LaunchTemplateBackend
from moto.ec2.responses.launch_templates import LaunchTemplates

from infra.local.aws.moto_patches import Repairs

PAGE: Final = 200


def repair(repairs: Repairs) -> None:
    """Put our creation, listing and deletion in place."""
    stock_create = repairs.stock(LaunchTemplateBackend, "create_launch_template")
    stock_delete = repairs.stock(LaunchTemplateBackend, "delete_launch_template")

    def create_launch_template(
        self: Any, name: str, description: str, template_data: dict[str, Any], tag_spec: Any
    ) -> Any:
        specifications = template_data.get("TagSpecifications") or []
        kept = [
            specification
            for specification in specifications
            if specification["ResourceType"] != "launch-template"
        ]
        launch = {key: value for key, value in template_data.items() if key != "TagSpecifications"}
        if kept:
            launch["TagSpecifications"] = kept
        return stock_create(self, name, description, launch, tag_spec)

    def delete_launch_template(self: Any, name: str | None, tid: str | None) -> Any:
        _existing(self, [tid] if tid else [], [name] if name else [])
        return stock_delete(self, name, tid)

    def describe_launch_templates(self: Any) -> ActionResult:
        self.error_on_dryrun()
        backend = self.ec2_backend
        found = _existing(
            backend,
            self._get_param("LaunchTemplateIds", []),
            self._get_param("LaunchTemplateNames", []),
        )
        filters = self._filters_from_querystring()
        passing = {
            describe_launch_template.id
            for describe_launch_template in backend.describe_launch_templates(filters=filters)
        }
        rows = sorted(
            (entry for entry in found if entry.id in passing), key=lambda entry: str(entry.name)
        )
        start = int(self._get_param("NextToken") or 0)
        size = min(PAGE, int(self._get_param("MaxResults") or PAGE))
        more = start + size < len(rows)
        owner = f"arn:{self.partition}:iam::{self.current_account}:root"
        return ActionResult(
            {
                "LaunchTemplates": [_shown(row, owner) for row in rows[start : start + size]],
                "NextToken": str(start + size) if more else None,
            }
        )

    head = ("self", "name", "description", "template_data", "tag_spec")
    repairs.replace(
        LaunchTemplateBackend, "create_launch_template", create_launch_template, parameters=head
    )
    repairs.replace(
        LaunchTemplateBackend,
        "delete_launch_template",
        delete_launch_template,
        parameters=("self", "name", "tid"),
    )
    repairs.replace(LaunchTemplates, "describe_launch_templates", describe_launch_templates)


def _existing(backend: Any, ids: Sequence[str], names: Sequence[str]) -> list[Any]:
    """The named templates, or all."""
    for name in names:
        if name not in backend.launch_template_name_to_ids:
            raise EC2ClientError(
                "InvalidLaunchTemplateName.NotFoundException",
                f"The specified launch template, with template name {name}, does not exist.",
            )
    for value in ids:
        if value not in backend.launch_templates:
            raise EC2ClientError(
                "InvalidLaunchTemplateId.NotFound",
                f"The specified launch template, with template ID {value}, does not exist.",
            )
    wanted = {*ids, *(backend.launch_template_name_to_ids[name] for name in names)}
    return [
        launch_template
        for launch_template in backend.launch_templates.values()
        if not wanted or launch_template.id in wanted
    ]


def _shown(template: Any, owner: str) -> dict[str, Any]:
    return {
        "CreateTime": template.create_time,
        "CreatedBy": owner,
        "DefaultVersionNumber": template.default_version_number,
        "LatestVersionNumber": template.latest_version_number,
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "Tags": template.get_tags(),
    }
