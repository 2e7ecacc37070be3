"""Writes who may do what in a cluster: the roles, and the groups and the account that have them.

    python -m tools.manifests.access

The groups are given by the access entries of a cluster's roles
(infra/aws/components/cluster_role.py); no subject is in two of them.
"""

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MANIFEST: Final = Path(__file__).parents[2] / "infra" / "cluster" / "access.yaml"
_READ: Final = ("get", "list")
_WATCH: Final = ("get", "list", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What some roles may do with some resources.

    Attributes:
        resources: Names of resources, separated by spaces.
        verbs: By role, what it may do; a role that is not named may do nothing with them.
        reason: Why, where names do not say it.
    """

    resources: str
    verbs: dict[str, tuple[str, ...]]
    group: str = ""
    reason: str = ""


ROLES: Final = {
    "forwarder": "The forwarder reads and changes nothing.",
    "launch": "provision makes nodes and binds pods, and deletes nothing.",
    "inside": (
        "bind and the timers of emptiness, expiration, registration and replacement bind pods "
        "and delete nodes (a Node with Dovetail's finalizer stays until termination "
        "removes it). They make no node and delete no pod."
    ),
    "terminate": "termination, interrupt and sweep drain and remove nodes, and make none.",
}


def _acting(*verbs: str) -> dict[str, tuple[str, ...]]:
    """Return the same verbs for each role of the functions."""
    return dict.fromkeys(("launch", "inside", "terminate"), verbs)


# provision and sweep follow the pods and nodes of large clusters by a watch.
RULES: Final = (
    Rule(
        resources="pods",
        verbs={
            "forwarder": _WATCH,
            "launch": _WATCH,
            "inside": _READ,
            "terminate": ("delete", *_WATCH),
        },
    ),
    Rule(resources="pods/binding", verbs={"launch": ("create",), "inside": ("create",)}),
    Rule(resources="pods/eviction", verbs={"terminate": ("create",)}),
    Rule(
        resources="nodes",
        verbs={
            "forwarder": _WATCH,
            "launch": ("create", *_WATCH, "patch"),
            "inside": ("delete", *_READ, "patch"),
            "terminate": ("delete", *_WATCH, "patch"),
        },
    ),
    Rule(group="apps", resources="daemonsets", verbs={"launch": ("list",)}),
    Rule(
        group="node.k8s.io",
        resources="runtimeclasses",
        verbs={"launch": ("list",)},
        reason="Daemons take their overhead besides the requests of containers.",
    ),
    Rule(
        resources="namespaces",
        verbs={"launch": ("list",), "inside": ("list",)},
        reason="Listed if a pod has a rule about pods of namespaces with some labels.",
    ),
    Rule(
        resources="persistentvolumeclaims",
        verbs={"launch": ("list",), "terminate": ("get",)},
        reason="Read if a pod has volumes: where they can be attached, whether they are detached.",
    ),
    Rule(resources="persistentvolumes", verbs={"launch": _READ}),
    Rule(
        group="storage.k8s.io",
        resources="csinodes storageclasses",
        verbs={"launch": ("list",)},
    ),
    Rule(
        group="storage.k8s.io",
        resources="volumeattachments",
        verbs={"launch": ("list",), "terminate": ("list",)},
    ),
    Rule(
        group="karpenter.sh",
        resources="nodepools provisioners",
        verbs={"forwarder": _WATCH, **_acting(*_READ)},
    ),
    Rule(
        group="karpenter.sh",
        resources="nodepools/status provisioners/status",
        verbs={"launch": ("patch",), "terminate": ("patch",)},
        reason="provision writes conditions; sweep writes these and how many nodes there are.",
    ),
    Rule(
        group="karpenter.k8s.aws",
        resources="awsnodetemplates ec2nodeclasses",
        verbs={"launch": _READ, "inside": ("list",), "terminate": ("list",)},
        reason="Read with the Provisioners and NodePools that name one.",
    ),
    Rule(
        group="karpenter.k8s.aws",
        resources="awsnodetemplates/status ec2nodeclasses/status",
        verbs={"launch": ("patch",)},
    ),
    Rule(
        group="policy",
        resources="poddisruptionbudgets",
        verbs=_acting("list"),
        reason="Pods that no budget allows to be evicted are not asked to leave.",
    ),
    Rule(
        group="coordination.k8s.io",
        resources="leases",
        verbs={"launch": ("list",), "terminate": ("list",)},
        reason="A second autoscaler that runs holds a lease.",
    ),
    Rule(
        resources="events",
        verbs=_acting("create", "get", "patch"),
        reason="Read to count an Event that is repeated.",
    ),
)
_LABELS: Final = "labels:\n    app.kubernetes.io/name: dovetail"
_HEAD: Final = f"""\
# Made by `make access` from tools/manifests/access.py.
# The groups are given by the access entries of the cluster's launch, terminate and inside roles; no
# subject is in two.
apiVersion: v1
kind: Namespace
metadata:
  name: dovetail
  {_LABELS}
    pod-security.kubernetes.io/enforce: restricted
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: dovetail-forwarder
  namespace: dovetail
  {_LABELS}
"""
_ACCOUNT: Final = """\
  - kind: ServiceAccount
    name: dovetail-forwarder
    namespace: dovetail
"""


def manifest() -> str:
    """Return the text of the manifest."""
    return "---\n".join([_HEAD, *(document for role in ROLES for document in _documents(role))])


def _documents(role: str) -> Iterator[str]:
    rules = "".join(_written(rule, rule.verbs[role]) for rule in RULES if role in rule.verbs)
    said = textwrap.fill(ROLES[role], width=100, initial_indent="# ", subsequent_indent="# ")
    head = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {}\n"
        f"metadata:\n  name: dovetail-{role}\n  {_LABELS}\n"
    )
    yield f"{said}\n{head.format('ClusterRole')}rules:\n{rules}"
    group = f"  - apiGroup: rbac.authorization.k8s.io\n    kind: Group\n    name: dovetail:{role}\n"
    subject = _ACCOUNT if role == "forwarder" else group
    yield (
        f"{head.format('ClusterRoleBinding')}"
        "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n"
        f"  name: dovetail-{role}\nsubjects:\n{subject}"
    )


def _written(rule: Rule, verbs: tuple[str, ...]) -> str:
    reason = f"  # {rule.reason}\n" if rule.reason else ""
    group = rule.group or '""'
    return (
        f"{reason}  - apiGroups: [{group}]\n"
        f"    resources: [{', '.join(rule.resources.split())}]\n"
        f"    verbs: [{', '.join(verbs)}]\n"
    )


def main() -> int:
    """Write the manifest."""
    MANIFEST.write_text(manifest(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
