"""What a real API server says of documents under Dovetail's definitions and under Karpenter's."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import yaml

from infra.local.demo.cluster_client import ClusterClient, Refused
from tests.real.build import module_texts
from tools.manifests import crds

Raw = dict[str, Any]
_FILES: Final = (
    ("sigs.k8s.io/karpenter", "karpenter.sh_nodepools.yaml"),
    ("github.com/aws/karpenter-provider-aws", "karpenter.k8s.aws_ec2nodeclasses.yaml"),
)
_PLACES: Final = {
    "NodePool": "apis/karpenter.sh/v1/nodepools",
    "EC2NodeClass": "apis/karpenter.k8s.aws/v1/ec2nodeclasses",
}
_DEFINITIONS: Final = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WAIT_SECONDS: Final = 60.0
_SAME_ANSWERS: Final = 20
_WORKERS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A class of documents of which the definitions say otherwise.

    Attributes:
        ours: What Dovetail's definition says of it, as a pattern; empty where it takes it.
        theirs: The same of Karpenter's.
        reason: Why that stays.
    """

    ours: str = ""
    theirs: str = ""
    reason: str

    def covers(self, ours: str, theirs: str) -> bool:
        """Return whether two verdicts differ in this way."""
        return all(
            re.search(pattern, said, re.DOTALL) if pattern else not said
            for pattern, said in ((self.ours, ours), (self.theirs, theirs))
        )


DIFFERENCES: Final = (
    Difference(
        theirs=r"disruption\.consolidateAfter: Required",
        reason="Karpenter needs it until v1.15 only; absent it means 0s, as v1.15 says",
    ),
    Difference(
        ours=r"(taints|startupTaints)\[\d+\]: Duplicate value",
        reason="Karpenter finds it at run time, and then launches nothing for the NodePool",
    ),
    Difference(
        ours=r"requirements\[\d+\]\.values\[\d+\]",
        reason="no node can have the value as a label; Karpenter says so at run time",
    ),
    Difference(
        ours=r"requirements\[\d+\](\.key|\.operator|: Invalid)|metadata\.labels",
        reason="no node can have the label, or the key is an autoscaler's own; Karpenter says so "
        "at run time",
    ),
    Difference(
        ours=r"SelectorTerms\[\d+\]\.(tags|name|owner|ssmParameter|id|alias)",
        reason="EC2 refuses it, or nothing has it: the mistake is told when it is made",
    ),
    Difference(
        ours=r"blockDeviceMappings\[\d+\]",
        reason="EC2 refuses such a disk: the mistake is told when it is made",
    ),
    Difference(
        ours=r"nodeClassRef\.(group|kind|name): Too long",
        reason="no group, kind or name is longer than 253 characters",
    ),
    Difference(
        ours=r"spec\.(tags|userData|context|role|instanceProfile|kubelet)",
        reason="EC2, IAM or the kubelet refuses it: the mistake is told when it is made",
    ),
    Difference(
        theirs=r"taints\[\d+\]\.(key|value|effect)|startupTaints\[\d+\]\.(key|value|effect)",
        reason="Dovetail's models say it in the NodePool's condition",
    ),
    Difference(
        theirs=r"nodeClassRef\.group",
        reason="the NodePool of another provider is left alone, whatever it says",
    ),
    Difference(
        ours=r"spec\.kubelet",
        reason="since v1.15 Karpenter's definition takes any kubelet field and value; Dovetail "
        "knows those that it acts on",
    ),
)


def karpenters(version: str) -> tuple[str, list[Raw]]:
    """Return the definitions that Karpenter's modules carry, and their version.

    Raises:
        Problem: A module cannot be had.
    """
    found: list[Raw] = []
    for module, name in _FILES:
        version, files = module_texts(module, version, "pkg/apis/crds")
        found.append(yaml.safe_load(files[name]))
    return version, found


def dovetails() -> list[Raw]:
    """Return Dovetail's definitions of the same kinds."""
    made = (yaml.safe_load(text) for text in crds.manifests().values())
    return [raw for raw in made if raw["spec"]["names"]["kind"] in _PLACES]


def install(client: ClusterClient, definitions: Iterable[Raw], probe: Raw, *, taken: bool) -> None:
    """Replace the definitions, and wait until the API server judges by them.

    Args:
        probe: A document of which the former definitions say otherwise.
        taken: Whether these take it.
    """
    for definition in definitions:
        name = definition["metadata"]["name"]
        try:
            known = client.call("GET", f"{_DEFINITIONS}/{name}")
        except Refused:
            client.apply(definition)
            continue
        version = {"resourceVersion": known["metadata"]["resourceVersion"]}
        body = {**definition, "metadata": {**definition["metadata"], **version}}
        client.call("PUT", f"{_DEFINITIONS}/{name}", body)
    ends, same = time.monotonic() + _WAIT_SECONDS, 0
    while same < _SAME_ANSWERS:
        assert time.monotonic() < ends, "the definitions are not served"
        same = same + 1 if (not verdict(client, probe)) == taken else 0
        time.sleep(0.1)


def verdict(client: ClusterClient, document: Raw) -> str:
    """Return why the API server would refuse a document, empty if it would take it."""
    try:
        client.call("POST", _PLACES[document["kind"]], document, query={"dryRun": "All"})
    except Refused as refused:
        return refused.message or "refused"
    return ""


def verdicts(client: ClusterClient, documents: Sequence[Raw]) -> list[str]:
    """Return the verdict of each document."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(pool.map(lambda document: verdict(client, document), documents))


def differing(
    ours: Sequence[str], theirs: Sequence[str], names: Sequence[str]
) -> tuple[Mapping[str, int], list[str]]:
    """Return how many documents differ, by reason, and those for which there is no reason."""
    counts: dict[str, int] = {}
    unexplained = []
    for name, own, other in zip(names, ours, theirs, strict=True):
        if bool(own) == bool(other):
            continue
        why = next((found for found in DIFFERENCES if found.covers(own, other)), None)
        if why is None:
            unexplained.append(
                f"{name}: Dovetail's: {own or 'taken'}; Karpenter's: {other or 'taken'}"
            )
        else:
            counts[why.reason] = counts.get(why.reason, 0) + 1
    return counts, unexplained
