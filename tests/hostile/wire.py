"""An API server that serves any objects, and records the requests.

The product's own client calls it; only its pool of connections is replaced. Nothing is validated:
it acts as any API server of any version, aggregated ones too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final, cast
from urllib.parse import parse_qs

from urllib3 import PoolManager
from urllib3.response import HTTPResponse
from urllib3.util import parse_url

from shared.kube.api import KubeApi

_NAME: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
# Everything the control plane asks of an API server: these paths, with one name where one belongs.
_PATHS: Final = re.compile(
    rf"""/api/v1/(nodes|pods|namespaces|persistentvolumes|persistentvolumeclaims)
    |/api/v1/(nodes|persistentvolumes)/{_NAME}
    |/api/v1/namespaces/{_NAME}/(persistentvolumeclaims(/{_NAME})?|events(/{_NAME})?)
    |/api/v1/namespaces/{_NAME}/pods/{_NAME}(/binding|/eviction)?
    |/apis/(apps/v1/daemonsets|policy/v1/poddisruptionbudgets|node\.k8s\.io/v1/runtimeclasses)
    |/apis/storage\.k8s\.io/v1/(storageclasses|csinodes|volumeattachments)
    |/apis/coordination\.k8s\.io/v1/namespaces/{_NAME}/leases
    |/apis/karpenter\.sh/v1alpha5/provisioners(/{_NAME}(/status)?)?
    |/apis/karpenter\.k8s\.aws/v1alpha1/awsnodetemplates(/{_NAME}(/status)?)?
    |/apis/karpenter\.sh/v1/nodepools(/{_NAME}(/status)?)?
    |/apis/karpenter\.k8s\.aws/v1/ec2nodeclasses(/{_NAME}(/status)?)?
    """,
    re.VERBOSE,
)
_COLLECTIONS: Final = {
    "Pod": "/api/v1/pods",
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
    "Lease": "/apis/coordination.k8s.io/v1/leases",
    "Provisioner": "/apis/karpenter.sh/v1alpha5/provisioners",
    "AWSNodeTemplate": "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates",
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
}
_NAMESPACED: Final = re.compile(r"(/apis?/(?:[^/]+/)?v1)/namespaces/([^/]+)/([a-z]+)(?:/([^/]+))?")
Answer = tuple[int, Any]


class Wire:
    """Objects by kind, and the paths that went out, as urllib3 writes them on the wire."""

    def __init__(self, objects: Mapping[str, Sequence[Any]]) -> None:
        self.paths: list[str] = []
        self._shelves = {_COLLECTIONS[kind]: list(found) for kind, found in objects.items()}
        self.api = KubeApi("http://api.example", cast("PoolManager", self), dict)

    def request(self, method: str, url: str, **options: Any) -> HTTPResponse:
        """Return the answer to a call, in place of the pool of connections."""
        target = parse_url(url)
        path = target.path or ""
        self.paths.append(path)
        query = parse_qs(target.query or "")
        content = options["body"]
        body = None if content is None else json.loads(content)
        status, answer = self._answer(method, path, query.get("fieldSelector", [""])[0], body)
        text = json.dumps(answer).encode()
        return HTTPResponse(BytesIO(text), status=status, preload_content=False)

    @property
    def strange(self) -> list[str]:
        """The paths that went out and are none of those the control plane asks for."""
        return [path for path in self.paths if not _PATHS.fullmatch(path)]

    def _answer(self, method: str, path: str, selector: str, body: Any) -> Answer:
        if method == "GET" and path in self._shelves:
            return self._list(self._shelves[path], selector)
        if found := _NAMESPACED.fullmatch(path):
            group, namespace, plural, name = found.groups()
            items = self._shelves.get(f"{group}/{plural}", [])
            items = [item for item in items if _metadata(item).get("namespace") == namespace]
        else:
            collection, _, name = path.rpartition("/")
            items = self._shelves.get(collection, [])
        if method == "GET" and not name:
            return self._list(items, selector)
        if method == "POST":
            self._shelves.get(path, []).append(body)
            return 201, body
        same = [item for item in items if _metadata(item).get("name") == name]
        return (200, same[0]) if same else (404, {"message": "not found"})

    @staticmethod
    def _list(items: Sequence[Any], selector: str) -> Answer:
        shown = [item for item in items if _selected(item, selector)]
        return 200, {"metadata": {"resourceVersion": "1"}, "items": shown}


def _selected(raw: Any, selector: str) -> bool:
    if not selector.startswith("spec.nodeName"):
        return True
    spec = raw.get("spec") if isinstance(raw, dict) else None
    node = spec.get("nodeName") if isinstance(spec, dict) else None
    wanted = selector.partition(",")[0].removeprefix("spec.nodeName")
    return bool(node) if wanted == "!=" else (node or "") == wanted.removeprefix("=")


def _metadata(raw: Any) -> Mapping[str, Any]:
    found = raw.get("metadata") if isinstance(raw, dict) else None
    return found if isinstance(found, dict) else {}
