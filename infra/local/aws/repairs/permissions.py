"""IAM: roles are checked by action name, by our own rules; bucket policies are kept alone."""

import re
from typing import Any

from infra.local.aws.access.permissions import Permissions
from infra.local.aws.backends import moto_name
from infra.local.aws.moto_patches import repair, replace

_SCOPE = re.compile(r"Credential=([^/]+)/\d+/[^/]*/([^/]+)/")
_used: list[Permissions] = []


def use_permissions(permissions: Permissions) -> None:
    """Name the rules that requests are checked by."""
    _used[:] = [permissions]


@repair("permissions-by-action")
def check_by_action() -> None:
    """Ask our rules before each operation; moto's cannot judge resources and conditions."""
    from moto.core.exceptions import AccessDeniedError

    mixin = moto_name("core.authorization", "ActionAuthenticatorMixin")

    def authorize(self: Any, iam_request_cls: type, resource: str = "*") -> None:
        del iam_request_cls, resource
        scope = _SCOPE.search(self.headers.get("Authorization") or "")
        if scope is None or not _used:
            return
        body = self.raw_body or b""
        refused = _used[0].check(
            key_id=scope[1],
            service=scope[2],
            operation=str(self.data["Action"] if scope[2] == "s3" else self._get_action()),
            body=body if isinstance(body, bytes) else str(body).encode(),
            target_role=str((self.querystring.get("RoleArn") or [""])[0]),
        )
        if refused is not None:
            role, action = refused.split(": ", 1)
            raise AccessDeniedError(user_arn=role, action=action)

    replace(mixin, "_authenticate_and_authorize_action", authorize)


@repair("permissions-linked-roles")
def name_linked_roles() -> None:
    """Name the roles of EC2 Fleet and Spot as IAM does: clients find them by name."""
    from moto.iam.models import SERVICE_NAME_CONVERSION

    SERVICE_NAME_CONVERSION.update(ec2fleet="EC2Fleet", spot="EC2Spot")


@repair("permissions-profiles")
def list_profiles_by_path() -> None:
    """List the instance profiles below a path: who cleans up its own must not see others'.

    Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListInstanceProfiles.html
    (2026-12).
    """
    from moto.core.responses import ActionResult
    from moto.iam.responses import IamResponse

    def list_instance_profiles(self: Any) -> Any:
        prefix = self._get_param("PathPrefix") or "/"
        found = [row for row in self.backend.get_instance_profiles() if row.path.startswith(prefix)]
        return ActionResult({"InstanceProfiles": found})

    replace(IamResponse, "list_instance_profiles", list_instance_profiles)


@repair("buckets-policies")
def keep_policies_only() -> None:
    """Decide nothing by bucket policy.

    moto ignores conditions, so the usual "deny without TLS" statement would deny every call.
    """
    from moto.iam.access_control import PermissionResult
    from moto.s3.models import FakeBucket

    def get_permission(self: Any, action: str, resource: str) -> Any:
        del self, action, resource
        return PermissionResult.NEUTRAL

    replace(FakeBucket, "get_permission", get_permission)
