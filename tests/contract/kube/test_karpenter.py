"""The Karpenter port: NodeClaims change only as they were read; Karpenter is seen when it runs."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from functions.cli.migrate.karpenter import Karpenter
from functions.cli.migrate.kube_karpenter import KarpenterObjects
from functions.cli.migrate.node_claim_documents import (
    kept_claim_text,
    node_claim_document,
    node_claim_status,
)
from functions.cli.migrate.node_claims import NodeClaim
from infra.local.kube.server import EmbeddedKube
from shared.kube.api import KubeApi
from shared.kube.connection import connect_endpoint
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.errors import ConflictError, NotInstalledError, PermanentError
from shared.model.values import replace
from tests.builders import NOW, instance, node, provisioner
from tests.fakes.clock import FakeClock
from tests.fakes.karpenter import FakeKarpenter

OBJECTS = Path(__file__).parents[3] / "examples" / "take-over" / "karpenter.yaml"
KEPT = {
    "name": "general-1",
    "labels": {keys.NODE_POOL: "general"},
    "annotations": {"karpenter.sh/nodepool-hash": "17"},
    "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"}},
    "drifted": "",
}
OWNER = provisioner("general", kind=OwnerKind.NODE_POOL, uid="uid-pool")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class Server(NamedTuple):
    """An API server on which Karpenter has run."""

    api: KubeApi
    clock: FakeClock
    karpenter: Karpenter


def server_at(url: str) -> Server:
    api, clock = connect_endpoint(url, "", str), FakeClock()
    return Server(api, clock, KarpenterObjects(api, clock.now))


@pytest.fixture
def server() -> Iterator[Server]:
    with EmbeddedKube() as kube:
        found = server_at(kube.url)
        definition, deployment = yaml.safe_load_all(OBJECTS.read_text(encoding="utf-8"))
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert found.api.send("POST", path, body=definition).ok
        assert found.api.send("POST", DEPLOYMENTS, body=deployment).ok
        yield found


@pytest.fixture(params=["fake", "kube"])
def karpenter(request: pytest.FixtureRequest) -> Karpenter:
    if request.param == "fake":
        return FakeKarpenter()
    found: Server = request.getfixturevalue("server")
    return found.karpenter


def made(karpenter: Karpenter) -> NodeClaim:
    return karpenter.make_node_claim(node_claim_document(KEPT, OWNER))


def only(karpenter: Karpenter) -> NodeClaim:
    (found,) = karpenter.node_claims()
    return found


def test_a_node_claim_is_made_once_with_finalizer_and_what_was_kept(karpenter: Karpenter) -> None:
    claim = made(karpenter)
    assert only(karpenter) == claim
    assert claim.kept == KEPT
    assert (claim.node_pool, claim.is_finalized, claim.registered) == ("general", True, False)
    with pytest.raises(ConflictError):
        made(karpenter)


def test_its_status_names_the_machine_and_that_it_has_joined(karpenter: Karpenter) -> None:
    claim = made(karpenter)
    status = node_claim_status(node("n1"), instance("i-n1", image_id="ami-1"), NOW)
    karpenter.write_status(claim, status)
    found = only(karpenter)
    assert (found.provider_id, found.registered) == ("aws:///us-east-1a/i-n1", True)
    assert kept_claim_text(found) == kept_claim_text(claim)
    with pytest.raises(ConflictError):
        karpenter.write_status(claim, status)


def test_a_node_claim_goes_only_as_it_was_read_without_its_finalizer(karpenter: Karpenter) -> None:
    claim = made(karpenter)
    karpenter.remove_finalizer(claim)
    with pytest.raises(ConflictError):
        karpenter.delete_node_claim(claim)
    free = only(karpenter)
    assert not free.is_finalized
    karpenter.delete_node_claim(free)
    assert karpenter.node_claims() == ()
    karpenter.delete_node_claim(free)
    with pytest.raises(ConflictError):
        karpenter.remove_finalizer(free)


def test_other_finalizers_stay(karpenter: Karpenter) -> None:
    document = node_claim_document(KEPT, OWNER)
    document["metadata"]["finalizers"].append("example.com/audit")
    karpenter.remove_finalizer(karpenter.make_node_claim(document))
    assert only(karpenter).other_finalizers == ("example.com/audit",)
    assert not only(karpenter).is_finalized


# --- the adapter alone


def test_a_refused_change_is_no_conflict(server: Server) -> None:
    claim = made(server.karpenter)
    wrong = replace(claim, finalizers=("no finalizer",))
    with pytest.raises(PermanentError):
        server.karpenter.remove_finalizer(wrong)


def test_a_cluster_without_node_claims_says_so() -> None:
    with EmbeddedKube() as kube, pytest.raises(NotInstalledError, match="are not defined"):
        server_at(kube.url).karpenter.node_claims()


def test_a_deployment_that_has_or_wants_replicas_runs(server: Server) -> None:
    assert server.karpenter.running() == ()
    merge = "application/merge-patch+json"
    path = f"{DEPLOYMENTS}/karpenter"
    server.api.send("PATCH", path, body={"spec": {"replicas": 2}}, content_type=merge)
    (running,) = server.karpenter.running()
    assert running == (
        "Deployment default/karpenter has 2 replicas: "
        "kubectl -n default scale deployment karpenter --replicas 0"
    )
    server.api.send("PATCH", path, body={"spec": {"replicas": 0}}, content_type=merge)
    status: dict[str, Any] = {"status": {"replicas": 1}}
    server.api.send("PATCH", f"{path}/status", body=status, content_type=merge)
    (left,) = server.karpenter.running()
    assert "has 1 replicas" in left


def test_a_lease_that_is_renewed_counts_in_any_namespace_and_is_not_remembered(
    server: Server,
) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "karpenter-leader-election", "namespace": "default"},
        "spec": {
            "holderIdentity": "pod-1",
            "renewTime": server.clock.now().isoformat().replace("+00:00", ".000000Z"),
        },
    }
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert server.api.send("POST", path, body=lease).ok
    (running,) = server.karpenter.running()
    assert running.startswith("lease default/karpenter-leader-election was renewed by pod-1")
    server.clock.advance(timedelta(minutes=2))
    assert server.karpenter.running() == ()
