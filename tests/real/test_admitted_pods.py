"""Pods of `dovetail plan` beside those that real controllers make and a real API server admits.

Not compared: parts of names that are drawn (hashes, uids, suffixes), where only is asked whether
they are there and the same for all; what a DaemonSet's controller adds to bind each pod to its
node; which of several equal pods a quota refuses, and whether it refuses those of a DaemonSet,
whose nodes are not known; pods of a StatefulSet of the examples after the first, which come one
after the other. The API server writes the values of `matchLabelKeys` into selectors, where
Dovetail keeps them once: an expression that asks for what a label of the selector asks for is left
out on both sides.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import fields

from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.workloads import PodReader
from infra.local.demo.cluster_client import ClusterClient, Refused
from shared.manifests.admission import admission_of
from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.pods import decode_pod
from shared.manifests.raw_json import controller_ref
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Pod, Scheduling
from shared.model.requirements import Requirements
from shared.model.values import replace
from shared.planning.rules.daemon_overhead import runs_on
from tests.docs.pages import ROOT
from tests.real.build import say
from tests.real.cluster import Cluster
from tests.real.drawn_workloads import CLASSES, Raw, drawn, examples

pytestmark = pytest.mark.timeout(1200)
DRAWN: Final = 300
FEW: Final = 20
SEED: Final = 20261129
# A CronJob runs at the next minute; the controllers make twenty pods a second.
PATIENCE_SECONDS: Final = 400
QUIET_SECONDS: Final = 90
_COLLECTIONS: Final = {
    "CronJob": "apis/batch/v1/namespaces/{}/cronjobs",
    "DaemonSet": "apis/apps/v1/namespaces/{}/daemonsets",
    "Deployment": "apis/apps/v1/namespaces/{}/deployments",
    "Job": "apis/batch/v1/namespaces/{}/jobs",
    "LimitRange": "api/v1/namespaces/{}/limitranges",
    "Namespace": "api/v1/namespaces",
    "Pod": "api/v1/namespaces/{}/pods",
    "PriorityClass": "apis/scheduling.k8s.io/v1/priorityclasses",
    "ReplicaSet": "apis/apps/v1/namespaces/{}/replicasets",
    "ReplicationController": "api/v1/namespaces/{}/replicationcontrollers",
    "ResourceQuota": "api/v1/namespaces/{}/resourcequotas",
    "RuntimeClass": "apis/node.k8s.io/v1/runtimeclasses",
    "StatefulSet": "apis/apps/v1/namespaces/{}/statefulsets",
}
_RULES: Final = ("Namespace", "PriorityClass", "RuntimeClass", "LimitRange", "ResourceQuota")
# Labels whose values are drawn: they may differ, and are the same wherever they stand in a pod.
_DRAWN_LABELS: Final = (
    "pod-template-hash",
    "controller-revision-hash",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
)
_NODE: Final = "n1"
_LABELS: Final = {"team": "a", "runtime": "kata", "kubernetes.io/hostname": _NODE}
_NOTHING: Final = {"cpu": "0", "memory": "0", "pods": "0"}


@pytest.fixture(scope="module")
def client(program: Path) -> Iterator[ClusterClient]:
    with Cluster(program) as started:
        found = started.client
        for document in CLASSES:
            create(found, document)
        # A DaemonSet makes pods for it, and nothing else fits.
        found.call("POST", "api/v1/nodes", {"metadata": {"name": _NODE, "labels": _LABELS}})
        yield found


def keep_ready(client: ClusterClient) -> None:
    """Say what a kubelet would say each 40 s at least: without it no daemon is made."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    ready["lastHeartbeatTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    status = {"conditions": [ready], "capacity": _NOTHING, "allocatable": _NOTHING}
    client.merge(f"api/v1/nodes/{_NODE}/status", {"status": status})


def create(client: ClusterClient, document: Raw) -> None:
    namespace = document["metadata"].get("namespace", "")
    client.call("POST", _COLLECTIONS[document["kind"]].format(namespace), document)


def key_of(document: Raw) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata["namespace"], metadata["name"]


class Planned:
    """What `dovetail plan` makes of the documents, by workload."""

    def __init__(self, documents: list[Raw]) -> None:
        every = [*CLASSES, *documents]
        read = [Document(where="drawn", raw=json.loads(json.dumps(raw))) for raw in every]
        self.pods: dict[tuple[str, str, str], list[Pod]] = {}
        self.refused: dict[tuple[str, str, str], list[str]] = {}
        for pod in PodReader(read).read():
            owner = pod.owner
            name = owner.name if owner is not None else pod.name
            kind = owner.kind if owner is not None else "Pod"
            told = [text for text in pod.scheduling.refusals if "not be created" in text]
            (self.refused if told else self.pods).setdefault(
                (kind, pod.namespace, name), []
            ).append(
                told[0] if told else pod  # type: ignore[arg-type]
            )
        admission = admission_of(document.with_namespace for document in read)
        self.daemonsets: dict[tuple[str, str, str], DaemonSet] = {
            key_of(raw): decode_daemonset(raw, admission)
            for raw in documents
            if raw["kind"] == "DaemonSet"
        }

    def count(self, key: tuple[str, str, str]) -> int:
        daemon_set = self.daemonsets.get(key)
        if daemon_set is not None:
            return 0 if daemon_set.problem or not runs_on(daemon_set, _LABELS, ()) else 1
        return len(self.pods.get(key, ()))


def owners(client: ClusterClient) -> dict[str, tuple[str, str, str]]:
    """Return the workload of each object that workloads make, by its uid."""
    found = {}
    for kind in ("ReplicaSet", "Job"):
        for made in client.items(_COLLECTIONS[kind].replace("namespaces/{}/", "")):
            owner = controller_ref(made["metadata"])
            if owner is not None:
                namespace = made["metadata"]["namespace"]
                found[made["metadata"]["uid"]] = (owner.kind, namespace, owner.name)
    return found


def pods_of(client: ClusterClient) -> dict[tuple[str, str, str], list[Raw]]:
    """Return the pods of the cluster by their workloads."""
    made_by = owners(client)
    found: dict[tuple[str, str, str], list[Raw]] = {}
    for pod in client.items("api/v1/pods"):
        owner = controller_ref(pod["metadata"])
        namespace = pod["metadata"]["namespace"]
        key = ("Pod", namespace, pod["metadata"]["name"])
        if owner is not None:
            key = made_by.get(owner.uid, (owner.kind, namespace, owner.name))
        found.setdefault(key, []).append(pod)
    return found


def plain(value: object, labels: dict[str, str], name: str) -> str:
    """Return how a value is written, with names for what is drawn."""
    text = repr(value)
    # A name may hold a hash.
    text = text.replace(name, "<name>") if name else text
    for label in _DRAWN_LABELS:
        if labels.get(label):
            text = text.replace(labels[label], f"<{label}>")
    return text


def with_selectors_once(scheduling: Scheduling) -> Scheduling:
    """Return it with selectors that ask for each label once."""

    def once(selector: LabelSelector | None) -> LabelSelector | None:
        if selector is None:
            return None
        said = {(key, frozenset({value})) for key, value in selector.match_labels}
        kept = tuple(
            item
            for item in selector.requirements.items
            if item.complement or (item.key, item.values) not in said
        )
        return replace(selector, requirements=Requirements(kept))

    def terms(found: tuple[AffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
        return tuple(replace(term, selector=once(term.selector)) for term in found)

    return replace(
        scheduling,
        affinity=terms(scheduling.affinity),
        anti_affinity=terms(scheduling.anti_affinity),
        spreads=tuple(replace(rule, selector=once(rule.selector)) for rule in scheduling.spreads),
    )


def seen(pod: Pod, kind: str, name: str) -> dict[str, str]:
    """Return what scheduling reads of a pod, field by field, as text."""
    labels = dict(pod.labels)
    if kind == "CronJob":
        # A run is named after its minute.
        labels = {key: re.sub(r"-\d{8}$", "", value) for key, value in labels.items()}
    scheduling = with_selectors_once(pod.scheduling)
    told = {
        field.name: plain(getattr(scheduling, field.name), dict(pod.labels), name)
        for field in fields(Scheduling)
    }
    if kind == "CronJob":
        told = {key: re.sub(r"-\d{8}(?=')", "", text) for key, text in told.items()}
    told["labels"] = plain(sorted(labels.items()), labels, name)
    told["priority_class"] = pod.priority_class
    return told


def compared(key: tuple[str, str, str], real: list[Raw], planned: Planned) -> list[str]:
    """Return in which fields the pods of a workload differ."""
    kind = key[0]
    found = []
    by_name = {pod.name: pod for pod in planned.pods.get(key, ())}
    for raw in real:
        pod = decode_pod(raw)
        if kind == "DaemonSet":
            daemon_set = planned.daemonsets[key]
            expected = Pod(
                namespace=key[1],
                name="",
                uid="",
                labels=daemon_set.labels,
                scheduling=daemon_set.scheduling,
                priority_class=pod.priority_class,
            )
            # The node of each pod is named in its affinity.
            scheduling = replace(
                pod.scheduling, required_terms=expected.scheduling.required_terms, refusals=()
            )
            claims = tuple(name for name in scheduling.claims if not name.startswith(pod.name))
            pod = replace(pod, scheduling=replace(scheduling, claims=claims))
        elif kind in ("StatefulSet", "Pod"):
            if pod.name not in by_name:
                found.append(f"{key}: {pod.name} is not planned, but {sorted(by_name)}")
                continue
            expected = by_name[pod.name]
        else:
            index = pod.labels.get("batch.kubernetes.io/job-completion-index")
            same = [
                other
                for other in by_name.values()
                if other.labels.get("batch.kubernetes.io/job-completion-index") == index
            ]
            if not same:
                found.append(f"{key}: no pod with index {index} is planned")
                continue
            expected = same[0]
        # Of these the names are not drawn, and no value is taken for a part of one.
        named = kind in ("StatefulSet", "Pod")
        right = seen(pod, kind, "" if named else pod.name)
        told = seen(expected, kind, "" if named else expected.name)
        found += [
            f"{key}: {field}: planned {told[field]}, real {right[field]}"
            for field in right
            if told[field] != right[field]
        ]
    return found


def judge(client: ClusterClient, documents: list[Raw]) -> None:
    """Create the documents and compare what becomes of them with what is planned."""
    ends = time.monotonic() + PATIENCE_SECONDS
    rules = [document for document in documents if document["kind"] in _RULES]
    for document in rules:
        create(client, document)
    await_namespaces(client, rules, ends)
    planned = Planned(documents)
    workloads = [document for document in documents if document["kind"] not in _RULES]
    problems = [*created(client, workloads, planned)]
    keys = [key_of(document) for document in workloads]
    await_pods(client, {key: planned.count(key) for key in keys if not _ordered(key)}, ends)
    refused = [key for key in keys if planned.refused.get(key) and key[0] != "Pod"]
    problems += [
        f"{key}: planned as refused, and no event says so"
        for key in await_refusals(client, refused, ends)
    ]
    real = pods_of(client)
    for key in keys:
        there, wanted = len(real.get(key, ())), planned.count(key)
        if there != wanted and not (_ordered(key) and there):
            problems.append(f"{key}: {there} pods, planned {wanted}: {planned.refused.get(key)}")
        problems += compared(key, real.get(key, []), planned)
    counts = Counter(key[0] for key in keys for _ in real.get(key, ()))
    told = ", ".join(f"{count} of {kind}" for kind, count in sorted(counts.items()))
    beyond = sum(len(texts) for texts in planned.refused.values())
    say(f"{len(keys)} workloads: pods {told}; {beyond} refused; {len(problems)} differences")
    for problem in problems[:40]:
        say(f"  {problem}")
    assert not problems


def created(client: ClusterClient, workloads: list[Raw], planned: Planned) -> Iterator[str]:
    """Create workloads and bare pods; yield where the API server says otherwise than the plan."""
    for document in workloads:
        key, refusals = key_of(document), planned.refused.get(key_of(document))
        expected = document["kind"] == "Pod" and refusals
        try:
            create(client, document)
        except Refused as refused:
            if not expected:
                yield f"{key}: refused: {refused}"
        else:
            if expected:
                yield f"{key}: created, planned as refused: {refusals}"


def _ordered(key: tuple[str, str, str]) -> bool:
    """Return whether pods of a workload come one after the other, so the first waits for ever."""
    return key[0] == "StatefulSet" and key[1].startswith("example-")


def await_namespaces(client: ClusterClient, rules: list[Raw], ends: float) -> None:
    """Wait until pods can be created: service accounts are there, quotas counted."""
    namespaces = {rule["metadata"]["name"] for rule in rules if rule["kind"] == "Namespace"}
    quotas = {key_of(rule) for rule in rules if rule["kind"] == "ResourceQuota"}
    while time.monotonic() < ends:
        accounts = {
            found["metadata"]["namespace"]
            for found in client.items("api/v1/serviceaccounts")
            if found["metadata"]["name"] == "default"
        }
        counted = {
            ("ResourceQuota", found["metadata"]["namespace"], found["metadata"]["name"])
            for found in client.items("api/v1/resourcequotas")
            if found.get("status", {}).get("hard")
        }
        if namespaces <= accounts and quotas <= counted:
            return
        time.sleep(1)


def await_pods(client: ClusterClient, wanted: dict[tuple[str, str, str], int], ends: float) -> None:
    """Wait until workloads have their pods, or none has been made for a long time."""
    found, changed = 0, time.monotonic()
    while time.monotonic() < min(ends, changed + QUIET_SECONDS):
        keep_ready(client)
        there = {key: len(pods) for key, pods in pods_of(client).items()}
        if all(there.get(key, 0) >= count for key, count in wanted.items()):
            return
        if sum(there.values()) != found:
            found, changed = sum(there.values()), time.monotonic()
        time.sleep(2)


def await_refusals(
    client: ClusterClient, keys: list[tuple[str, str, str]], ends: float
) -> list[tuple[str, str, str]]:
    """Return the workloads of which no event says that a pod was refused."""
    left = keys
    while left:
        events = client.items("api/v1/events", fieldSelector="reason=FailedCreate")
        said = {(e["metadata"]["namespace"], e["involvedObject"]["name"]) for e in events}
        left = [
            key
            for key in left
            if not any(space == key[1] and name.startswith(key[2]) for space, name in said)
        ]
        if not left or time.monotonic() > ends:
            break
        time.sleep(2)
    return left


def test_pods_of_the_examples_are_those_that_are_planned(client: ClusterClient) -> None:
    judge(client, examples(ROOT / "examples"))


def test_pods_of_a_few_drawn_workloads_are_those_that_are_planned(client: ClusterClient) -> None:
    # A CronJob makes a Job at the next full minute only.
    judge(client, drawn(FEW, SEED + 1, without=["CronJob"]))


def test_pods_of_drawn_workloads_are_those_that_are_planned(client: ClusterClient) -> None:
    judge(client, drawn(DRAWN, SEED))
