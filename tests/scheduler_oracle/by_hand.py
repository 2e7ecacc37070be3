"""Cases and plans made by hand, to try the second opinion on."""

from shared.model.ec2.launches import PlannedNode, PodRef
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.generate import draw
from tests.scheduler_oracle.clusters.seeded_random import Json
from tests.scheduler_oracle.missing import allowed_options


def bare_case(*changes: Json) -> Json:
    """Return three plain pods and one wide Provisioner; changes go into the pods' specs."""
    case = draw(0, frozenset())
    case |= {"types": ["m5.2xlarge"], "daemonsets": [], "nodes": [], "slots": []}
    case["sites"] = {"buyer0": ["us-east-1a", "us-east-1b"]}
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    requirements = [{"key": keys.CAPACITY_TYPE, "operator": "Exists"}]
    case["provisioners"][0]["spec"] |= {"requirements": requirements}
    case["pods"] = [
        {
            "metadata": {
                "name": f"p{number}",
                "uid": f"uid-p{number}",
                "namespace": "default",
                "labels": {"app": "web"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {**spec, **change},
            "status": {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                ]
            },
        }
        for number, change in enumerate(changes or ({}, {}, {}))
    ]
    return case


def simple_plan(snapshot: ClusterSnapshot) -> Plan:
    """Return one node for each pod, in the first zone."""
    owner = snapshot.provisioners[0]
    option = next(iter(allowed_options(snapshot, owner, {})))
    nodes = [
        PlannedNode(
            provisioner=owner.name,
            labels={keys.PROVISIONER: owner.name},
            options=(option,),
            pods=(PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid),),
            requests=pod.scheduling.requests,
        )
        for pod in snapshot.pending
    ]
    return Plan(nodes=tuple(nodes), order=tuple(ref for node in nodes for ref in node.pods))
