"""A small client of a Kubernetes API: what the demo reads and writes, nothing of the product."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

from infra.local.demo.problem import Problem
from infra.local.kube.kinds import built_in

Object = dict[str, Any]

_PATIENCE_SECONDS = 60.0

# Group version, kind and plural of the custom resources that a scenario may apply.
_CUSTOM = (
    ("karpenter.sh/v1alpha5", "Provisioner", "provisioners"),
    ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", "awsnodetemplates"),
    ("karpenter.sh/v1", "NodePool", "nodepools"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass", "ec2nodeclasses"),
)
# Path and plural of every kind a scenario may apply, and whether it has a namespace.
_PATHS = {
    (resource.api_version, resource.kind): (
        f"{'apis' if resource.group else 'api'}/{resource.api_version}",
        resource.plural,
        resource.namespaced,
    )
    for resource in built_in()
} | {(version, kind): (f"apis/{version}", plural, False) for version, kind, plural in _CUSTOM}


@dataclass(frozen=True, slots=True)
class Refused(Exception):  # noqa: N818 - an answer of the server, not a failure of the demo
    """The API server refused a request."""

    status: int
    message: str

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"


class ClusterClient:
    """Talks JSON to an API server."""

    def __init__(self, server: str, *, token: str = "", ca_file: str | None = None) -> None:
        self._server = server.rstrip("/")
        self._pool = urllib3.PoolManager(maxsize=4, ca_certs=ca_file, retries=False)
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Make one request and return its JSON.

        A call that is answered 429 with Retry-After is repeated for up to a minute: the server
        answers so while it fills the cache of a new custom resource.
        """
        url = f"{self._server}/{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {**self._headers, "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        timeout = urllib3.Timeout(connect=5, read=30)
        ends = time.monotonic() + _PATIENCE_SECONDS
        while True:
            answer = self._pool.request(method, url, body=data, headers=headers, timeout=timeout)
            wait = answer.headers.get("Retry-After", "")
            if answer.status != 429 or not wait.isdecimal():
                break
            if time.monotonic() + int(wait) > ends:
                break
            time.sleep(int(wait))
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, _message(answer.data)[:400])
        document: Object = json.loads(answer.data or b"{}")
        return document

    def items(self, path: str, **query: str) -> list[Object]:
        listed = self.call("GET", path, query=query)
        return list(listed.get("items") or [])

    def deleted(self, path: str, version: str) -> list[Object]:
        """Return what has been deleted of a collection since a version, as it last was.

        Takes a second. What the server has forgotten by now is not returned.
        """
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1"}
        answer = self._pool.request(
            "GET",
            f"{self._server}/{path}?{urlencode(query)}",
            headers=self._headers,
            timeout=urllib3.Timeout(connect=5, read=30),
        )
        events = [json.loads(line) for line in answer.data.splitlines()]
        return [event["object"] for event in events if event.get("type") == "DELETED"]

    def apply(self, document: Object) -> None:
        """Create or replace what the document says, by server-side apply."""
        self.call(
            "PATCH",
            path_of(document),
            document,
            content_type="application/apply-patch+yaml",
            query={"fieldManager": "dovetail-demo", "force": "true"},
        )

    def delete(self, document: Object) -> None:
        try:
            self.call("DELETE", path_of(document), query={"propagationPolicy": "Background"})
        except Refused as refused:
            if refused.status != 404:
                raise

    def merge(self, path: str, change: Object) -> None:
        self.call("PATCH", path, change, content_type="application/merge-patch+json")


def _message(body: bytes) -> str:
    """Return what a Status says; a path that is not served at all is answered in plain text."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip()


def path_of(document: Object) -> str:
    """Return the path of an object, without a leading slash."""
    kind = (str(document.get("apiVersion")), str(document.get("kind")))
    if kind not in _PATHS:
        known = ", ".join(sorted(name for _, name in _PATHS))
        raise Problem(f"kind {kind[1]} of {kind[0]} is not known here: use one of {known}")
    group, plural, namespaced = _PATHS[kind]
    name = document["metadata"]["name"]
    namespace = document["metadata"].get("namespace", "default")
    return f"{group}/{f'namespaces/{namespace}/' if namespaced else ''}{plural}/{name}"


def read_documents(paths: Iterable[Path]) -> list[Object]:
    """Return the Kubernetes documents of YAML files, in order."""
    found: list[Object] = []
    for path in paths:
        try:
            documents = list(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
        except (OSError, yaml.YAMLError) as error:
            raise Problem(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error
        found.extend(document for document in documents if document)
    return found
