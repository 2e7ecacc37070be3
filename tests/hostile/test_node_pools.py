"""NodePools and EC2NodeClasses: refused in one line, or they say nothing but what they may."""

from typing import Any, Final

from hypothesis import strategies as st

from shared.instance_types.ami_families import refuse_wrong_user_data
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.problems import InvalidProvisionerError
from shared.model import labels as keys
from shared.planning.rules.provisioner_offerings import node_labels
from tests.hostile.corpus import batches, mutated, try_batch
from tests.hostile.test_provisioners import LONGEST_LINE
from tests.unit.manifests.documents import node_class, node_pool, wants

POOL: Final = node_pool(
    {
        "requirements": [
            wants(keys.INSTANCE_CPU, "Gte", "4"),
            {**wants(keys.INSTANCE_FAMILY, "In", "m5", "c5"), "minValues": 2},
        ],
        "taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}],
        "startupTaints": [{"key": "wait", "effect": "NoExecute"}],
        "expireAfter": "720h",
        "terminationGracePeriod": "1h30m",
    },
    {"labels": {"team": "red"}, "annotations": {keys.DO_NOT_DISRUPT: "true"}},
    disruption={
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "Never",
        "budgets": [{"nodes": "10%", "schedule": "@daily", "duration": "8h", "reasons": ["Empty"]}],
    },
    limits={"cpu": "100", "nodes": 3},
    weight=10,
)
CLASS: Final = node_class(
    userData="#!/bin/sh",
    tags={"team": "red"},
    kubelet={"maxPods": 20, "clusterDNS": ["10.0.0.10"]},
    metadataOptions={"httpTokens": "optional"},
    blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi"}}],
    instanceStorePolicy="RAID0",
    associatePublicIPAddress=True,
)
drawn = st.tuples(
    st.one_of(st.just(POOL), mutated((POOL,))), st.one_of(st.just(CLASS), mutated((CLASS,)))
)


@batches
def test_a_node_pool_is_refused_in_one_line_or_says_only_what_it_may(batch: int) -> None:
    taken = 0

    def check(documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
        nonlocal taken
        try:
            found = decode_node_pool(
                documents[0], by_name([documents[1]]), check=refuse_wrong_user_data
            )
        except InvalidProvisionerError as error:
            for problem in error.problems:
                assert problem.public.isprintable()
                assert problem.public.count(": ") >= 2
                assert len(problem.public) <= LONGEST_LINE
            return
        taken += 1
        assert all(keys.is_key(k) and keys.is_value(v) for k, v in node_labels(found).items())
        assert all(warning.isprintable() for warning in found.warnings)

    try_batch(batch, drawn, check)
    assert taken
