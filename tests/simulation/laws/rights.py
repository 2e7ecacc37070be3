"""What a function calls, its plan, its role in the cluster and its role in EC2 allow.

The plans of infra/aws/functions.py are what the functions' policies are made from, and
infra/cluster/access.yaml is what is applied in a cluster. No function is exempt, and neither is a
call: one that nothing here knows is refused.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from infra.aws.functions import FUNCTIONS, ClusterRoleKind, FunctionSpec
from tests.simulation.laws.launches import fail
from tests.simulation.schedule.faults import Site
from tests.simulation.schedule.kernel import Process

ACCESS: Final = Path(__file__).parents[3] / "infra/cluster/access.yaml"
# What the adapter of a cluster asks its API server for: resource and verb.
_IN_CLUSTER: Final[Mapping[str, tuple[str, str]]] = {
    "attach_limits": ("csinodes", "list"),
    "attached_volumes": ("volumeattachments", "list"),
    "bind": ("pods/binding", "create"),
    "bind_all": ("pods/binding", "create"),
    "bound_pods": ("pods", "list"),
    "change_node": ("nodes", "patch"),
    "claims": ("persistentvolumeclaims", "list"),
    "create_node": ("nodes", "create"),
    "daemonsets": ("daemonsets", "list"),
    "delete_node": ("nodes", "delete"),
    "delete_pod": ("pods", "delete"),
    "disruption_budgets": ("poddisruptionbudgets", "list"),
    "evict": ("pods/eviction", "create"),
    "force_delete_pod": ("pods", "delete"),
    "leave_copies": ("pods", "list"),
    "namespaces": ("namespaces", "list"),
    "node": ("nodes", "get"),
    "node_classes": ("ec2nodeclasses", "list"),
    "nodes": ("nodes", "list"),
    "pending_pods": ("pods", "list"),
    "pod": ("pods", "get"),
    "pods_on": ("pods", "list"),
    "provisioners": ("provisioners", "list"),
    "record_events": ("events", "create"),
    "set_pool_status": ("nodepools/status", "patch"),
    "set_provisioner_condition": ("provisioners/status", "patch"),
    "set_template_status": ("ec2nodeclasses/status", "patch"),
    "storage_classes": ("storageclasses", "list"),
    "volume_attachments": ("volumeattachments", "list"),
    "volumes": ("persistentvolumes", "list"),
}
# Which roles of a cluster may make a call to EC2; tests/infra/policies holds them to it.
_IN_EC2: Final[Mapping[str, frozenset[ClusterRoleKind]]] = {
    "create_fleet": frozenset({ClusterRoleKind.LAUNCH}),
    "delete_launch_template": frozenset({ClusterRoleKind.TERMINATE}),
    "endpoint": frozenset(ClusterRoleKind),
    "ensure_launch_template": frozenset({ClusterRoleKind.LAUNCH}),
    "find_images": frozenset({ClusterRoleKind.LAUNCH}),
    "image_ids": frozenset({ClusterRoleKind.LAUNCH}),
    "instances": frozenset(ClusterRoleKind),
    "launch_templates": frozenset({ClusterRoleKind.LAUNCH, ClusterRoleKind.TERMINATE}),
    "site": frozenset({ClusterRoleKind.LAUNCH}),
    "tagged_instances": frozenset(ClusterRoleKind),
    "terminate": frozenset({ClusterRoleKind.TERMINATE}),
}


def _in_cluster() -> dict[str, frozenset[tuple[str, str]]]:
    """Return what each group of a cluster may do: resources with verbs."""
    documents = [each for each in yaml.safe_load_all(ACCESS.read_text()) if each]
    return {
        document["metadata"]["name"]: frozenset(
            (resource, verb)
            for rule in document["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        )
        for document in documents
        if document["kind"] == "ClusterRole"
    }


def _allowed(plan: FunctionSpec) -> Iterator[tuple[str, str]]:
    """Yield the calls of a function that its plan and its role allow: port and method."""
    group = (
        frozenset() if plan.cluster_role is None else _GROUPS[f"dovetail-{plan.cluster_role.value}"]
    )
    for method, asked in _IN_CLUSTER.items():
        if asked in group:
            yield "cluster", method
    for method, rights in _IN_EC2.items():
        if plan.cluster_role in rights:
            yield "cloud", method
    if plan.wakes:
        yield from (("outbox", method) for method in ("evaluate", "wake"))
    for name in plan.invokes:
        yield "outbox", f"invoke_{name}"


_GROUPS: Final = _in_cluster()
_PLANS: Final = {plan.name: plan for plan in FUNCTIONS if plan.uses_ledger}
_ALLOWED: Final = {name: frozenset(_allowed(plan)) for name, plan in _PLANS.items()}
_STARTED: Final = {
    name: frozenset(timer.value for timer in plan.starts) for name, plan in _PLANS.items()
}
_BOUND: Final = frozenset({"cloud", "cluster", "outbox"})


def within_rights(process: Process, site: Site, args: tuple[Any, ...]) -> None:
    """Fail if AWS or the cluster would refuse a call for want of a right."""
    if site.port not in _BOUND:
        return
    name, method = process.function, site.method
    if method == "start_timer":
        if args[0].value not in _STARTED[name]:
            fail("rights", f"{name} may not start {args[0].value}")
    elif (site.port, method) not in _ALLOWED[name]:
        fail("rights", f"{name} may not call {site.port}.{method}")
