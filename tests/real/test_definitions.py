"""A real API server accepts the definitions of the custom resources, and applies their rules."""

import time
from typing import Any

import pytest
import yaml

from infra.local.demo.cluster_client import ClusterClient, Refused
from tests.infra.cluster import test_node_templates
from tests.infra.cluster.provisioner_documents import REFUSED, WHOLE, document
from tests.real.cluster import Cluster
from tests.unit.manifests.documents import node_class, node_pool
from tools.manifests import crds

pytestmark = pytest.mark.timeout(300)
_CRD = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> ClusterClient:
    found = cluster.client
    made = [yaml.safe_load(text) for text in crds.manifests().values()]
    for definition in made:
        found.apply(definition)
    deadline = time.monotonic() + 30
    for definition in made:
        while not _established(found, definition["metadata"]["name"]):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    return found


def _established(client: ClusterClient, name: str) -> bool:
    (status,) = (
        entry["status"] for entry in client.items(_CRD) if entry["metadata"]["name"] == name
    )
    conditions = {entry["type"]: entry["status"] for entry in status["conditions"] or ()}
    # A schema that is not structural is accepted, with this condition.
    assert conditions.get("NonStructuralSchema") != "True", status
    return conditions.get("Established") == "True"


def test_documents_with_everything_are_accepted(client: ClusterClient) -> None:
    client.apply(document(WHOLE))
    client.apply(test_node_templates.template(test_node_templates.WHOLE))


def test_a_node_pool_and_its_class_are_accepted_and_a_wrong_one_refused(
    client: ClusterClient,
) -> None:
    new = {"metadata": {"name": "new"}}
    client.apply({**node_class(), **new})
    client.apply({**node_pool(), **new})
    with pytest.raises(Refused, match="replicas"):
        client.apply({**node_pool(replicas=3), **new})


@pytest.mark.parametrize(
    "spec", [entry[1] for entry in REFUSED], ids=[entry[0] for entry in REFUSED]
)
def test_a_wrong_provisioner_is_refused(client: ClusterClient, spec: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        client.apply(document(spec, metadata={"name": "wrong"}))


def test_a_field_beside_spec_is_refused_with_its_place(client: ClusterClient) -> None:
    with pytest.raises(Refused, match=r"move it to spec\.limits"):
        client.apply(document({}, metadata={"name": "wrong"}, limits={"resources": {}}))
