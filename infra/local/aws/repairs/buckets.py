"""S3: bucket policies are kept and shown, not enforced."""

from typing import Any

from infra.local.aws.repairs.registry import repair, replace


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
