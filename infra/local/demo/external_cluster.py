"""A cluster that was there before the world and stays when the world ends."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import urllib3

from infra.local.api_proxy.target import require_allowed, server_of
from infra.local.demo.cluster_client import ClusterClient, Object, Refused, path_of
from infra.local.demo.problem import Problem
from infra.local.demo.timeline import NODE_POOL, PROVISIONER

_FINALIZER: Final = "karpenter.sh/termination"
_OWNERS: Final = {
    "Provisioner": "apis/karpenter.sh/v1alpha5/provisioners",
    "NodePool": "apis/karpenter.sh/v1/nodepools",
}
_PODS: Final = "api/v1/namespaces/default/pods"
_CLAIMS: Final = "api/v1/namespaces/default/persistentvolumeclaims"
_VOLUMES: Final = "api/v1/persistentvolumes"
_DEFINITION: Final = "CustomResourceDefinition"
_WORKLOADS: Final = frozenset({"DaemonSet", "Deployment", "Job", "StatefulSet"})
# Objects that other objects depend on are deleted last.
_LATER: Final = frozenset({"Namespace", "Node", _DEFINITION})
_WAIT_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.3


def require_allowed_kubeconfig(path: Path, allowed: str) -> None:
    """Refuse a kubeconfig whose server is neither on this machine nor the allowed one."""
    try:
        require_allowed(server_of(path), allowed)
    except ValueError as error:
        raise Problem(str(error)) from error


class ForeignCluster(ClusterClient):
    """A client that knows what it put in, so that it can leave the cluster as it was."""

    def __init__(self, server: str, *, token: str, ca_file: str | None) -> None:
        """Connect lazily; `check` comes before anything is applied."""
        super().__init__(server, token=token, ca_file=ca_file)
        self._stood: frozenset[str] = frozenset()
        self._claims: frozenset[str] = frozenset()
        self._added: list[Object] = []

    def check(self) -> None:
        """Look at what is there already."""
        try:
            nodes = self.items("api/v1/nodes")
            self._claims = frozenset(_name(entry) for entry in self.items(_CLAIMS))
            known = [
                (kind, _name(entry))
                for kind, path in _OWNERS.items()
                for entry in (self._get(path) or {}).get("items") or ()
            ]
        except Refused as refused:
            raise Problem(f"the cluster of the kubeconfig refuses its user: {refused}") from refused
        self._stood = frozenset(_name(node) for node in nodes)
        # They may belong to an installation that works: nothing is deleted unasked.
        for kind, name in known:
            remedy = f"kubectl delete {kind.lower()} {name}"
            raise Problem(f"the cluster has a {kind} already; if it may go: {remedy}")
        if left := next((_name(node) for node in nodes if _looks_ours(node)), None):
            patch = """--type=merge -p '{"metadata":{"finalizers":null}}'"""
            remedy = f"kubectl patch node {left} {patch} && kubectl delete node {left}"
            raise Problem(f"node {left} is of an earlier run or not ours; if it may go: {remedy}")

    def require_room(self) -> None:
        """Refuse a cluster in which a scenario's pods would run without Dovetail."""
        for node in self.items("api/v1/nodes"):
            if _takes_pods(node):
                raise Problem(
                    f"node {_name(node)} would take the scenario's pods: kubectl cordon "
                    f"{_name(node)}, and uncordon it afterwards"
                )
        if pods := self.items(_PODS):
            raise Problem(
                f"namespace default has pods ({_name(pods[0])}), and scenarios count what is "
                "there: delete them or take another cluster"
            )

    def apply(self, document: Object) -> None:
        """Apply, and remember what was not there before; a new definition is served after this."""
        new = self._get(path_of(document)) is None
        try:
            super().apply(document)
        except Refused as refused:
            what = f"{document['kind']} {_name(document)} ({document['apiVersion']})"
            raise Problem(f"the cluster refuses {what}: {refused}") from refused
        if new:
            self._added.append(document)
        if document["kind"] == _DEFINITION:
            served = _served_at(document)
            self._wait(lambda: [] if self._get(served) is not None else [document])

    def clean(self) -> str:
        """Delete what was put in, and our nodes; return what would not go, or an empty text."""
        added, self._added = self._added[::-1], []
        first = [entry for entry in added if entry["kind"] not in _LATER]
        later = [entry for entry in added if entry["kind"] in _LATER]
        for document in first:
            self.delete(document)
        left: list[Object] = []
        if any(entry["kind"] in _WORKLOADS for entry in first):
            left = self._wait(lambda: self.items(_PODS), self._end_pod)
            left += self._wait(self._new_claims, self._end_claim)
            left += self._wait(self._new_volumes)
        left += self._wait(self._our_nodes, self._end_node)
        for document in later:
            self.delete(document)
        left += self._wait(
            lambda: [entry for entry in added if self._get(path_of(entry)) is not None]
        )
        return ", ".join(f"{entry.get('kind', 'object')} {_name(entry)}" for entry in left)

    # -- inside ---------------------------------------------------------------------------

    def _get(self, path: str) -> Object | None:
        try:
            return self.call("GET", path)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def _our_nodes(self) -> list[Object]:
        """Return nodes that came after us and carry our label: by `check` they are ours."""
        nodes = self.items("api/v1/nodes")
        return [node for node in nodes if _looks_ours(node) and _name(node) not in self._stood]

    def _new_claims(self) -> list[Object]:
        """Return claims that came after us: StatefulSets make them and leave them behind."""
        return [entry for entry in self.items(_CLAIMS) if _name(entry) not in self._claims]

    def _end_claim(self, claim: Object) -> None:
        self._send("DELETE", f"{_CLAIMS}/{_name(claim)}")

    def _new_volumes(self) -> list[Object]:
        """Return volumes of such claims, which their provisioner deletes while the world runs."""
        return [entry for entry in self.items(_VOLUMES) if self._is_of_new_claim(entry["spec"])]

    def _is_of_new_claim(self, volume: Object) -> bool:
        claim = volume.get("claimRef") or {}
        is_deleted = volume.get("persistentVolumeReclaimPolicy") == "Delete"
        return (
            is_deleted and claim.get("namespace") == "default" and claim["name"] not in self._claims
        )

    def _end_node(self, node: Object) -> None:
        """Delete a node, whose instance ends with the world, and the pods on it."""
        path = f"api/v1/nodes/{_name(node)}"
        # Deleted first: before that, the finalizer would be put back.
        self._send("DELETE", path)
        for pod in self.items("api/v1/pods", fieldSelector=f"spec.nodeName={_name(node)}"):
            self._end_pod(pod)
        kept = [
            finalizer
            for finalizer in node["metadata"].get("finalizers") or ()
            if finalizer != _FINALIZER
        ]
        self._send("PATCH", path, {"metadata": {"finalizers": kept}})

    def _end_pod(self, pod: Object) -> None:
        meta = pod["metadata"]
        path = f"api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        self._send("DELETE", path, {"gracePeriodSeconds": 0})

    def _send(self, method: str, path: str, body: Any = None) -> None:
        """Make a change to what may be gone by now."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            self.call(method, path, body, content_type=kind)
        except Refused as refused:
            if refused.status != 404:
                raise

    def _wait(
        self, find: Callable[[], list[Object]], act: Callable[[Object], None] | None = None
    ) -> list[Object]:
        """Look, and act on what is found, until nothing is; return what stays all the same."""
        ends = time.monotonic() + _WAIT_SECONDS
        while left := find():
            if time.monotonic() > ends:
                break
            for entry in left if act is not None else ():
                assert act is not None
                act(entry)
            time.sleep(_LOOK_SECONDS)
        return left


def leave(cluster: ForeignCluster, say: Callable[[str], None]) -> None:
    """Clean a cluster when the world ends; what goes wrong is said, for the world must end."""
    say("leaving the cluster as it was")
    try:
        if left := cluster.clean():
            say(f"still in the cluster: {left}")
    except (Refused, urllib3.exceptions.HTTPError) as error:
        say(f"the cluster could not be cleaned: {error}")


def _served_at(definition: Object) -> str:
    """Return the path of the objects that a definition defines."""
    spec = definition["spec"]
    version = next(entry["name"] for entry in spec["versions"] if entry["served"])
    return f"apis/{spec['group']}/{version}/{spec['names']['plural']}"


def _name(document: Object) -> str:
    return str(document["metadata"]["name"])


def _looks_ours(node: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    return PROVISIONER in labels or NODE_POOL in labels


def _takes_pods(node: Object) -> bool:
    spec = node.get("spec") or {}
    effects = {taint["effect"] for taint in spec.get("taints") or ()}
    return not spec.get("unschedulable") and not effects & {"NoSchedule", "NoExecute"}
