"""A real API server accepts the definitions of the custom resources, and applies their rules."""

import time
from typing import Any

import pytest
import yaml

from infra.local.demo.cluster_client import ClusterClient, Refused
from tests.corpus import definitions
from tests.corpus.mutated import mutated, sound
from tests.infra.cluster import test_node_templates
from tests.infra.cluster.provisioner_documents import REFUSED, WHOLE, document
from tests.real.build import say
from tests.real.cluster import Cluster
from tests.unit.manifests.documents import node_class, node_pool
from tools.manifests import crds

pytestmark = pytest.mark.timeout(300)
CHANGED = 5_000
DOCUMENTS = [*sound(), *mutated(CHANGED)]
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


@pytest.fixture(scope="module")
def ours(client: ClusterClient) -> list[str]:
    """Return what Dovetail's definitions say of each document of the comparison."""
    return definitions.verdicts(client, DOCUMENTS)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["v1.14.1", "latest"])
def test_definitions_say_what_those_of_karpenter_say(
    client: ClusterClient, ours: list[str], version: str
) -> None:
    """Of changed documents one in a hundred may differ, each for a reason that is written down."""
    found, theirs = definitions.karpenters(version)
    static = {**node_pool(replicas=3), "metadata": {"name": "static"}}
    definitions.install(client, theirs, static, taken=True)
    try:
        said = definitions.verdicts(client, DOCUMENTS)
    finally:
        definitions.install(client, definitions.dovetails(), static, taken=False)
    names = [document["metadata"]["name"] for document in DOCUMENTS]
    counts, unexplained = definitions.differing(ours, said, names)
    assert not unexplained, "\n".join(unexplained[:20])
    changed, _ = definitions.differing(ours[-CHANGED:], said[-CHANGED:], names[-CHANGED:])
    total = sum(changed.values())
    accepted = sum(not text for text in ours)
    say(f"{found}: {total} of {CHANGED} changed documents differ; {accepted} are accepted")
    for reason, number in sorted(counts.items()):
        say(f"  {number}: {reason}")
    assert total <= CHANGED // 100
