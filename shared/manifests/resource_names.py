"""Classifies resources by their names.

Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/core/helper/helpers.go
(IsExtendedResourceName, IsNativeResource, IsOvercommitAllowed), 2026-11-29.
"""

from typing import Final

_NATIVE: Final = "kubernetes.io/"
_OF_QUOTAS: Final = "requests."
HUGE_PAGES: Final = "hugepages-"


def is_extended_resource(name: str) -> bool:
    """Return whether a resource is an extended resource, such as nvidia.com/gpu."""
    return "/" in name and _NATIVE not in name and not name.startswith(_OF_QUOTAS)


def is_overcommit_allowed(name: str) -> bool:
    """Return whether a container may request less of a resource than its limit."""
    native = "/" not in name or _NATIVE in name
    return native and not name.startswith(HUGE_PAGES)
