"""NodePools of a folder, file by file, as both sides read them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from functions.cli.plan.reading.documents import Document, read_documents
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.instance_types.catalog import EMBEDDED_REGION, Catalog
from shared.manifests.custom_resources.pool_lifetimes import is_foreign, named_class
from shared.model import labels as keys
from shared.model.dialect import V1
from shared.model.errors import InvalidManifestError
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.nodes.join.node_objects import region_of
from shared.planning.rules.provisioner_offerings import as_configured
from tests.corpus.judging import OTHER_CLASSES, judge
from tests.peers.pool_pods import Asked, pods_for
from tests.peers.problems import Raw, deployment, type_for_karpenter


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """NodePools with their EC2NodeClasses, and pods for them.

    Attributes:
        documents: As they were published; an EC2NodeClass that another file has is made up.
        catalog: In the Region that the NodePools name.
    """

    name: str
    pools: tuple[Raw, ...]
    documents: tuple[Document, ...]
    asked: tuple[Asked, ...]
    catalog: Catalog

    def snapshot(self) -> ClusterSnapshot:
        """Return the cluster with all pods, as the command line reads it."""
        pods = [
            Document(where=entry.workload.name, raw=deployment(entry.workload))
            for entry in self.asked
        ]
        return read_snapshot([*self.documents, *pods], self.catalog).snapshot

    def for_karpenter(self, snapshot: ClusterSnapshot) -> dict[str, Any]:
        """Return the document that the Go program reads."""
        return {
            "pools": self.pools,
            "types": {
                owner.name: [
                    type_for_karpenter(as_configured(owner, entry))
                    for entry in self.catalog.instance_types
                ]
                for owner in snapshot.provisioners
            },
            "workloads": [
                {
                    "name": entry.workload.name,
                    "replicas": entry.workload.replicas,
                    "template": entry.workload.template,
                }
                for entry in self.asked
            ],
        }


def clusters(folder: Path, catalog: Catalog, seed: int) -> Iterator[Cluster]:
    """Yield the NodePools of each file that Dovetail accepts, with pods for them.

    A file that has several NodePools of one name, as pages with examples do, is several clusters.
    """
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".yaml", ".yml", ".json"):
            continue
        content = path.read_bytes()
        try:
            if judge(path.name, content).refusals:
                continue
            documents = list(read_documents(path.name, content))
        except InvalidManifestError:
            continue
        classes: dict[str, list[Raw]] = defaultdict(list)
        pools: dict[str, list[Raw]] = defaultdict(list)
        for document in documents:
            if document.api_version == V1.template_version:
                classes[document.name].append(document.raw)
            is_pool = (document.api_version, document.kind) == (V1.owner_version, V1.owner_kind)
            if is_pool and not is_foreign(document.raw):
                pools[document.name].append(document.raw)
        for number in range(max(map(len, pools.values()), default=0)):
            chosen = [found[number] for found in pools.values() if number < len(found)]
            yield _cluster(f"{path.name} {number}", chosen, classes, number, catalog, seed)


def _cluster(
    name: str,
    pools: Sequence[Raw],
    classes: Mapping[str, Sequence[Raw]],
    number: int,
    catalog: Catalog,
    seed: int,
) -> Cluster:
    local = in_region(catalog, _region(pools))
    needed = []
    for wanted in sorted({named_class(pool) for pool in pools}):
        known = classes.get(wanted, ())
        made_up = {**OTHER_CLASSES, "metadata": {"name": wanted}}
        needed.append(known[min(number, len(known) - 1)] if known else made_up)
    return Cluster(
        name=name,
        pools=tuple(pools),
        documents=tuple(Document(where=name, raw=raw) for raw in (*pools, *needed)),
        asked=tuple(pods_for(pools, local.instance_types, seed)),
        catalog=local,
    )


def _region(pools: Iterable[Raw]) -> str:
    """Return the Region of the first zone that a NodePool names, else the catalogue's own."""
    for pool in pools:
        for need in pool["spec"]["template"]["spec"]["requirements"]:
            for value in need.get("values", ()) if need["key"] == keys.ZONE else ():
                if (found := region_of(value)) != value:
                    return found
    return EMBEDDED_REGION


def in_region(catalog: Catalog, region: str) -> Catalog:
    """Return the catalogue as if its Region were another: of zones, only the name changes."""
    if region == catalog.region:
        return catalog
    types = tuple(
        replace(
            entry,
            labels={**entry.labels, keys.REGION: region},
            offerings=tuple(
                replace(offering, zone=offering.zone.replace(catalog.region, region))
                for offering in entry.offerings
            ),
        )
        for entry in catalog.instance_types
    )
    return replace(catalog, region=region, instance_types=types)
