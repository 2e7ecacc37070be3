"""Limits of Provisioners and NodePools."""

from shared.manifests.api.provisioner import NATIVE_RESOURCES
from shared.manifests.problems import Section
from shared.manifests.raw_json import Raw
from shared.model.resources import Resources


def read_limits(given: Raw, path: str) -> tuple[Resources | None, tuple[str, ...]]:
    """Return the limits; a limit on an unknown resource is left out with a warning.

    Args:
        given: Valid quantities by resource.
        path: Their path, such as `spec.limits`.
    """
    amounts = Section(given, "", []).resources_with_zeros().items
    warnings = tuple(
        f"{path}.{name}: {given[name]!r}: no instance has a resource of that name, "
        "so this limit never acts; write its full name, such as nvidia.com/gpu, or one of "
        f"{', '.join(NATIVE_RESOURCES)}"
        for name, _ in amounts
        if not _is_resource(name)
    )
    acting = Resources(tuple(item for item in amounts if _is_resource(item[0])))
    return acting or None, warnings


def _is_resource(name: str) -> bool:
    return name in NATIVE_RESOURCES or "/" in name or name.startswith("hugepages-")
