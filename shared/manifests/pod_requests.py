"""The requests of a pod, summed as kube-scheduler does it.

Source: https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers,
https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers,
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/,
https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/ (2026-08).
"""

from collections.abc import Callable

from shared.manifests.raw_json import Raw, condition, mapping, mappings, text
from shared.model.resources import PODS, Resources

_POD_LEVEL = ("cpu", "memory")


def pod_requests(spec: Raw, status: Raw, problems: list[str]) -> Resources:
    """Return the requests that the scheduler counts for a pod, with one of the resource `pods`.

    Containers run together with all restartable init containers (sidecars); an ordinary init
    container runs with the sidecars started before it; the larger sum counts. Pod-level requests
    replace the sum for cpu, memory and huge pages. The overhead of the runtime class is added. A
    container that is being resized counts with the larger of its requests and what the kubelet has
    allocated; where the resize is infeasible on its node, only with what is allocated.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/staging/src/k8s.io/
    component-helpers/resource/helpers.go (determineContainerReqs), 2026-11-27.

    Args:
        spec: The pod's spec, or that of a pod template.
        status: The pod's status, empty for a template.
        problems: Receives one sentence per quantity that cannot be read; it counts as zero.
    """
    given = _granted(status, problems)
    refused = resize_is_infeasible(status)

    def needs(container: Raw, path: str) -> Resources:
        return _container(container, path, given, problems, refused=refused)

    asked = _pod_level(spec, _together(spec, needs), problems)
    overhead = _parse(mapping(spec.get("overhead")), "spec.overhead", problems)
    return Resources.total((asked, overhead, Resources.of(**{PODS: 1})))


def pod_amounts(spec: Raw, field: str, problems: list[str]) -> Resources:
    """Return the sum of `requests`, or of `limits`, of a pod's containers as admission counts it.

    Amounts that are not set count as zero, and there is no overhead.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/limitranger/
    admission.go (podRequests, podLimits), 2026-11-29.

    Args:
        spec: The pod's spec.
        field: `requests` or `limits`.
        problems: Receives one sentence per quantity that cannot be read; it counts as zero.
    """

    def amounts(entry: Raw, path: str) -> Resources:
        return _parse(mapping(mapping(entry.get("resources")).get(field)), path, problems)

    said = amounts(spec, f"spec.resources.{field}")
    own = {name: amount for name, amount in said.items if is_pod_level(name)}
    return Resources.from_mapping({**dict(_together(spec, amounts).items), **own})


def _together(spec: Raw, needs: Callable[[Raw, str], Resources]) -> Resources:
    """Return the larger of the sum of what runs together and of each init container's sum."""
    running = Resources.total(
        needs(container, f"spec.containers[{n}]")
        for n, container in enumerate(mappings(spec.get("containers")))
    )
    sidecars = Resources()
    starting = Resources()
    for n, init_container in enumerate(mappings(spec.get("initContainers"))):
        needed = needs(init_container, f"spec.initContainers[{n}]")
        if is_sidecar(init_container):
            sidecars = sidecars + needed
            starting = starting.largest(sidecars)
        else:
            starting = starting.largest(sidecars + needed)
    return (running + sidecars).largest(starting)


def is_sidecar(init_container: Raw) -> bool:
    """Return whether an init container keeps running beside the containers."""
    return init_container.get("restartPolicy") == "Always"


def resize_is_infeasible(status: Raw) -> bool:
    """Return whether a pending resize of a pod does not fit its node."""
    return condition(status, "PodResizePending").get("reason") == "Infeasible"


def _container(
    entry: Raw, path: str, given: dict[str, Resources], problems: list[str], *, refused: bool
) -> Resources:
    resources = mapping(entry.get("resources"))
    asked = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
    needs = _parse(asked, f"{path}.resources", problems)
    granted = given.get(text(entry.get("name")))
    if granted is None:
        return needs
    return granted if refused else needs.largest(granted)


def _granted(status: Raw, problems: list[str]) -> dict[str, Resources]:
    found = {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for entry in mappings(status.get(field)):
            allocated = mapping(entry.get("allocatedResources"))
            actual = mapping(mapping(entry.get("resources")).get("requests"))
            if allocated or actual:
                path = f"status.{field}"
                found[text(entry.get("name"))] = _parse(allocated, path, problems).largest(
                    _parse(actual, path, problems)
                )
    return found


def _pod_level(spec: Raw, summed: Resources, problems: list[str]) -> Resources:
    resources = mapping(spec.get("resources"))
    requests = _parse(mapping(resources.get("requests")), "spec.resources.requests", problems)
    limits = _parse(mapping(resources.get("limits")), "spec.resources.limits", problems)
    amounts = dict(summed.items)
    for name, amount in limits.items:
        if is_pod_level(name) and name not in amounts:
            amounts[name] = amount
    amounts.update({name: amount for name, amount in requests.items if is_pod_level(name)})
    return Resources.from_mapping(amounts)


def is_pod_level(name: str) -> bool:
    """Return whether a pod may have pod-level requests of a resource."""
    return name in _POD_LEVEL or name.startswith("hugepages-")


def _parse(quantities: Raw, path: str, problems: list[str]) -> Resources:
    parsed = []
    for name, amount in quantities.items():
        try:
            # Null is zero: k8s.io/apimachinery/pkg/api/resource/quantity.go, UnmarshalJSON.
            parsed.append(Resources.parse({name: 0 if amount is None else amount}))
        except ValueError as error:
            problems.append(f"{path}: {error}")
    return Resources.total(parsed)
