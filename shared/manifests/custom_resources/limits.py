"""Limits of Provisioners and NodePools."""

from shared.manifests.api.provisioner import NATIVE_RESOURCES
from shared.manifests.fields import Raw
from shared.manifests.problems import Section
from shared.model.resources import Resources


def read_limits(given: Raw, path: str) -> tuple[Resources | None, tuple[str, ...]]:
    """Return the limits; one on a resource that no machine has is left out with a warning.

    Args:
        given: Valid quantities by resource.
        path: Where they are, such as `spec.limits`.
    """
    amounts = Section(given, "", []).ceilings().items
    warnings = tuple(
        f"{path}.{name}: {given[name]!r}: no machine has a resource of that name, "
        "so this limit never acts; write its full name, such as nvidia.com/gpu, or one of "
        f"{', '.join(NATIVE_RESOURCES)}"
        for name, _ in amounts
        if not _is_resource(name)
    )
    acting = Resources(tuple(item for item in amounts if _is_resource(item[0])))
    return acting or None, warnings


def _is_resource(name: str) -> bool:
    return name in NATIVE_RESOURCES or "/" in name or name.startswith("hugepages-")
