"""Callers may do what the roles that are bound to them allow, and nothing else."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from infra.local.kube.auth import Authenticator
from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import PODS, Api, Json, pod

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCESS = Path(__file__).parents[3] / "infra" / "cluster" / "access.yaml"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


Clients = Callable[[str], Api]


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    """Return what makes a client of the server with a token."""
    path = tmp_path / "auth.json"
    callers = [
        {"token": "reader", "username": "ann", "groups": ["readers"]},
        {"token": "forwarder", "username": "system:serviceaccount:dovetail:dovetail-forwarder"},
        *(
            {"token": role, "username": role, "groups": [f"dovetail:{role}"]}
            for role in ("launch", "inside", "terminate")
        ),
    ]
    path.write_text(json.dumps({"admin_token": "admin", "static_tokens": callers}))
    with (
        EmbeddedKube(authenticator=Authenticator(path)) as kube,
        contextlib.ExitStack() as made_here,
    ):

        def client(token: str) -> Api:
            made = Api(kube.url, token=token)
            made_here.callback(made.close)
            return made

        yield client


def bind(clients: Clients, rule: Json, *, namespace: str = "", subject: str = "ann") -> Api:
    """Give a user a role, in one namespace or everywhere; return the user's client."""
    kind, within = (
        ("Role", f"{RBAC}/namespaces/{namespace}") if namespace else ("ClusterRole", RBAC)
    )
    admin = clients("admin")
    admin.post(f"{within}/{kind.lower()}s", {"metadata": {"name": "r"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"},
        "subjects": [{"kind": "User", "name": subject}],
    }
    assert admin.post(f"{within}/{kind.lower()}bindings", binding).status == 201
    return clients("reader")


def test_a_caller_without_a_role_is_refused_with_what_was_asked(clients: Clients) -> None:
    answer = clients("reader").get(f"{PODS}/web")
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"] == (
        'pods "web" is forbidden: User "ann" cannot get resource "pods" in API group "" in the '
        'namespace "default"'
    )


@pytest.mark.parametrize(
    ("verbs", "method", "path", "status"),
    [
        (["list"], "GET", PODS, 200),
        (["list"], "GET", f"{PODS}?watch=1&timeoutSeconds=1", 403),
        (["watch"], "GET", f"{PODS}?watch=1&timeoutSeconds=1", 200),
        (["list", "watch"], "GET", f"{PODS}/web", 403),
        (["get"], "GET", f"{PODS}/web", 200),
        (["get"], "DELETE", f"{PODS}/web", 403),
        (["delete"], "DELETE", f"{PODS}/web", 200),
        (["delete"], "DELETE", PODS, 403),
        (["*"], "DELETE", PODS, 200),
    ],
)
@pytest.mark.parametrize("namespace", ["", "default"])
def test_a_role_allows_its_verbs(
    clients: Clients, namespace: str, verbs: list[str], method: str, path: str, status: int
) -> None:
    clients("admin").post(PODS, pod("web"))
    rule: Json = {"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}
    assert bind(clients, rule, namespace=namespace).call(method, path).status == status


def test_a_subresource_and_a_name_are_rights_of_their_own(clients: Clients) -> None:
    clients("admin").post(PODS, pod("web"))
    ann = bind(clients, {"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]})
    assert ann.get(f"{PODS}/web/status").status == 403
    named: Json = {
        "verbs": ["get"],
        "apiGroups": [""],
        "resources": ["*"],
        "resourceNames": ["web"],
    }
    admin = clients("admin")
    role = {"metadata": {"name": "r"}, "rules": [named]}
    assert admin.call("PUT", f"{RBAC}/clusterroles/r", role).status == 200
    assert ann.get(f"{PODS}/web/status").status == 200
    assert ann.get(f"{PODS}/other").status == 403
    assert ann.get(PODS).status == 403


def test_reviews_say_what_a_caller_may_do(clients: Clients) -> None:
    ann = bind(clients, {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]})

    def may(**attributes: str) -> bool:
        return bool(
            ann.post(REVIEW, {"spec": {"resourceAttributes": attributes}}).body["status"]["allowed"]
        )

    assert may(verb="get", resource="pods", subresource="log")
    assert not may(verb="get", resource="pods")
    (rule,) = ann.post(RULES, {"spec": {"namespace": "default"}}).body["status"]["resourceRules"]
    assert rule["resources"] == ["pods/log"]


def test_the_administrator_may_act_as_another_user(clients: Clients) -> None:
    bind(clients, {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]})
    admin, ann = clients("admin"), clients("reader")
    for client in (admin, ann):
        client.headers["Impersonate-User"] = "ann"
    assert admin.get(PODS).status == 200
    assert admin.get(f"{PODS}/web").status == 403
    refused = ann.get(PODS)
    assert (refused.status, "cannot impersonate" in refused.body["message"]) == (403, True)
    admin.headers |= {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}
    assert admin.get(f"{PODS}/web").status == 404


def test_the_right_to_act_as_users_is_none_to_act_as_groups(clients: Clients) -> None:
    ann = bind(clients, {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]})
    ann.headers |= {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}
    refused = ann.get(PODS)
    assert (refused.status, "cannot impersonate" in refused.body["message"]) == (403, True)


@pytest.mark.parametrize("role", ["forwarder", "launch", "terminate"])
def test_who_keeps_copies_of_pods_and_nodes_may_follow_them(clients: Clients, role: str) -> None:
    admin = clients("admin")
    for document in yaml.safe_load_all(ACCESS.read_text(encoding="utf-8")):
        if document["kind"].startswith("ClusterRole"):
            assert admin.post(f"{RBAC}/{document['kind'].lower()}s", document).status == 201
    client = clients(role)
    for path in ("/api/v1/pods", "/api/v1/nodes"):
        assert client.get(path).status == 200
        assert client.call("GET", f"{path}?watch=1&timeoutSeconds=1").status == 200
    assert client.call("DELETE", PODS).status == 403
