"""A plain HTTP client and small manifests for these tests."""

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

Json = dict[str, Any]
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def causes(self) -> list[Json]:
        causes: list[Json] = self.body["details"]["causes"]
        return causes


class Api:
    def __init__(self, url: str, *, token: str = "", context: ssl.SSLContext | None = None) -> None:
        self._where = urlsplit(url).netloc
        self._context = context
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._kept = self.connection()

    def connection(self) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self._where, timeout=60, context=self._context)
        return http.client.HTTPConnection(self._where, timeout=60)

    def close(self) -> None:
        self._kept.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        content: str = "application/json",
        **query: Any,
    ) -> Reply:
        headers = {"Accept": "application/json", **self.headers}
        if "accept" in query:
            headers["Accept"] = str(query.pop("accept"))
        data = None
        if body is not None:
            headers["Content-Type"] = content
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        text = urlencode({key.rstrip("_"): str(value) for key, value in query.items()})
        self._kept.request(method, path + (f"?{text}" if text else ""), data, headers)
        response = self._kept.getresponse()
        raw = response.read()
        got = {key.lower(): value for key, value in response.getheaders()}
        decoded = json.loads(raw) if got.get("content-type", "").startswith(
            "application/json") and raw else raw  # fmt: skip
        return Reply(status=response.status, body=decoded, headers=got)

    def get(self, path: str, **query: Any) -> Reply:
        return self.call("GET", path, **query)

    def post(self, path: str, body: Any, **query: Any) -> Reply:
        return self.call("POST", path, body, **query)

    def put(self, path: str, body: Any, **query: Any) -> Reply:
        return self.call("PUT", path, body, **query)

    def patch(self, path: str, body: Any, content: str = MERGE, **query: Any) -> Reply:
        return self.call("PATCH", path, body, content, **query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Reply:
        return self.call("DELETE", path, body, **query)

    def watch(self, path: str, **query: Any) -> "Stream":
        return Stream(self, path, {"watch": "true", "timeoutSeconds": "60", **query})


class Stream:
    """The lines of one watch."""

    def __init__(self, api: Api, path: str, query: dict[str, object]) -> None:
        self._connection = api.connection()
        accept = str(query.pop("accept", "application/json"))
        text = urlencode({key: str(value) for key, value in query.items()}, quote_via=quote)
        self._connection.request("GET", f"{path}?{text}", headers={"Accept": accept, **api.headers})
        self.response = self._connection.getresponse()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.response.close()
        self._connection.close()

    def __iter__(self) -> Iterator[Json]:
        for line in self.response:
            yield json.loads(line)

    def take(self, count: int) -> list[Json]:
        lines = iter(self)
        return [next(lines) for _ in range(count)]

    def seen(self, count: int) -> list[tuple[str, str]]:
        return [(entry["type"], entry["object"]["metadata"]["name"]) for entry in self.take(count)]


def pod(name: str, *, node: str = "", grace: int = 30, **metadata: Any) -> Json:
    spec: Json = {
        "containers": [{"name": "main", "image": "example.com/app:1"}],
        "terminationGracePeriodSeconds": grace,
    }
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def node(name: str, **metadata: Any) -> Json:
    ready = {"type": "Ready", "status": "True"}
    pressure = {"type": "MemoryPressure", "status": "False"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "spec": {},
        "status": {"conditions": [ready, pressure]},
    }


def deployment(name: str, *, replicas: int | None = None) -> Json:
    labels = {"app": name}
    spec: Json = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod(name)["spec"]},
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **data: str) -> Json:
    head: Json = {"apiVersion": "v1", "kind": "ConfigMap"}
    return head | {"metadata": {"name": name}, "data": data}


def definition(schema: Json, **version: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
                    **version,
                }
            ],
        },
    }
