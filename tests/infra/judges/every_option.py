"""A context that sets every option of docs/settings.md to something else than its default."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from infra.local.demo.children import ROOT

_ACCOUNT: Final = "123456789012"
_EC2: Final = f"arn:aws:ec2:eu-west-1:{_ACCOUNT}:"
CLUSTERS: Final = ("prod", "staging")
# As the object in cdk.json: texts, lists and numbers as people write them.
CONTEXT: Final[Mapping[str, Any]] = {
    "clusters": list(CLUSTERS),
    "max_price_per_hour": ["prod:25.50", "staging:none"],
    "forwarder_image": f"{_ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/dovetail/forwarder:1.2.3",
    "batch_window": 5,
    "alarm_topic": f"arn:aws:sns:eu-west-1:{_ACCOUNT}:alarms",
    "image_owners": "099720109477",
    "launch_resources": [
        f"prod:{_EC2}subnet/subnet-0123456789abcdef0",
        f"prod:{_EC2}network-interface/eni-0123456789abcdef0",
        "prod:arn:aws:ec2:eu-west-1::snapshot/snap-0123456789abcdef0",
    ],
    "image_parameters": f"prod:arn:aws:ssm:eu-west-1:{_ACCOUNT}:parameter/golden/al2023",
    "kms_keys": f"arn:aws:kms:eu-west-1:{_ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "metadata_hop_limit": 1,
    "metadata_tokens": "optional",
    "preference_policy": "Respect",
    "cni_role": "own",
    "ssm": "on",
    "subnets": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "security_groups": "sg-0123456789abcdef0",
    "existing_access_entries": "prod:nodes",
    "node_roles": "prod:MyNodeRole",
    "drift": "prod",
    "own_images": "all",
    "migrators": f"prod:arn:aws:iam::{_ACCOUNT}:role/Admin",
    "concurrency": "shared",
    "tracing": "on",
    "log_retention_days": 90,
    "removal": "destroy",
    "bundle": "code",
    "settings": {
        "binding_policy": "ready",
        "batch_idle_seconds": 2,
        "batch_max_seconds": 20,
        "registration_seconds": 600,
        "drain_deadline_seconds": 3600,
        "max_node_vcpus": 64,
        "max_launch_groups": 20,
        "fleet_burst": 4,
        "fleet_per_second": 1,
        "fewer_nodes_permille": 70,
        "preference_price_percent": 5,
        "minimum_saving_percent": 10,
        "minimum_saving_per_hour": 0.05,
        "minimum_pod_age_seconds": 900,
        "eviction_cost": 0.01,
        "disruption_budget_percent": 5,
        "disruption_window_seconds": 900,
        "autoscaler_namespaces": "kube-system",
        "daemonset_namespaces": "kube-system,monitoring",
        "pricing_region": "eu-central-1",
        "prefix_delegation": "true",
        "pod_interfaces": "true",
        "vm_memory_overhead_percent": 6,
        "reserved_interfaces": 1,
        "density_limited": "false",
    },
}


def not_set() -> set[str]:
    """Return the options that the page has and the context has not, or the other way round."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    given = {*CONTEXT, *CONTEXT["settings"]}
    return set(_options(page)) ^ given


def _options(page: str) -> Iterator[str]:
    for first in re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE):
        yield from re.findall(r"`(\w+)`", first)
