"""The manifests that go into a cluster: access rights and the forwarder."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.aws.functions import ClusterRoleKind
from infra.aws.names import BUS, FORWARDER_ACCOUNT, FORWARDER_NAMESPACE
from shared.settings import ForwarderSettings

FOLDER = Path(__file__).resolve().parents[3] / "infra" / "cluster"


def _documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def _rights(role: str) -> set[tuple[str, str]]:
    """Return (verb, resource) of a ClusterRole."""
    (found,) = [
        document
        for document in _documents("access.yaml")
        if document["kind"] == "ClusterRole" and document["metadata"]["name"] == role
    ]
    return {
        (verb, resource)
        for rule in found["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def test_every_manifest_is_applied() -> None:
    (kustomization,) = _documents("kustomization.yaml")
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}

    assert set(kustomization["resources"]) == files


def test_no_right_is_a_wildcard_and_no_secret_is_read() -> None:
    for document in _documents("access.yaml"):
        for rule in document.get("rules", ()):
            assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
            assert not {"secrets", "configmaps"} & set(rule["resources"])


def test_the_forwarder_only_looks() -> None:
    assert _rights("dovetail-forwarder") == {
        (verb, resource)
        for verb in ("get", "list", "watch")
        for resource in ("nodepools", "nodes", "pods", "provisioners")
    }


def test_launching_deletes_nothing_and_terminating_makes_no_node() -> None:
    launch, terminate = _rights("dovetail-launch"), _rights("dovetail-terminate")

    assert not [entry for entry in launch if entry[0] == "delete"]
    assert ("create", "pods/binding") in launch
    assert ("create", "pods/eviction") not in launch
    assert ("create", "nodes") not in terminate
    assert ("create", "pods/binding") not in terminate
    assert {("create", "pods/eviction"), ("delete", "nodes"), ("delete", "pods")} <= terminate


def test_acting_inside_makes_no_node_and_deletes_no_pod() -> None:
    inside = _rights("dovetail-inside")
    more = {
        ("create", "pods/binding"),
        ("list", "namespaces"),
        ("patch", "nodepools/status"),
        ("patch", "provisioners/status"),
    }

    assert inside - more < _rights("dovetail-terminate")
    assert more < _rights("dovetail-launch")
    assert not {("create", "nodes"), ("delete", "pods")} & inside


@pytest.mark.parametrize("right", list(ClusterRoleKind))
def test_the_group_of_an_access_entry_is_bound_to_its_role(right: ClusterRoleKind) -> None:
    (binding,) = [
        document
        for document in _documents("access.yaml")
        if document["kind"] == "ClusterRoleBinding"
        and document["subjects"][0]["name"] == right.kubernetes_group
    ]

    assert binding["roleRef"]["name"] == f"dovetail-{right.value}"
    assert len(binding["subjects"]) == 1


def test_the_forwarder_runs_as_the_identity_the_stack_gives_it() -> None:
    (deployment,) = _documents("forwarder.yaml")
    accounts = [
        document for document in _documents("access.yaml") if document["kind"] == "ServiceAccount"
    ]

    assert [
        (account["metadata"]["namespace"], account["metadata"]["name"]) for account in accounts
    ] == [(FORWARDER_NAMESPACE, FORWARDER_ACCOUNT)]
    assert deployment["metadata"]["namespace"] == FORWARDER_NAMESPACE
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == FORWARDER_ACCOUNT


def test_the_forwarder_can_read_its_settings_and_answers_its_probes() -> None:
    (deployment,) = _documents("forwarder.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    given = {entry["name"]: entry["value"] for entry in container["env"]}
    settings = ForwarderSettings.from_environment({**given, "DOVETAIL_CLUSTER": "prod"})
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}

    assert settings.bus == BUS
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert ports[container[probe]["httpGet"]["port"]] == settings.health_port


def _isolates_the_forwarder(policy: dict[str, Any], kind: str) -> bool:
    (deployment,) = _documents("forwarder.yaml")
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    return bool(
        policy["metadata"]["namespace"] == deployment["metadata"]["namespace"]
        and chosen.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
        and policy["spec"]["policyTypes"] == [kind]
    )


def test_nothing_but_its_node_may_connect_to_the_forwarder() -> None:
    (policy,) = _documents("network_policy.yaml")

    assert _isolates_the_forwarder(policy, "Ingress")
    assert policy["spec"]["ingress"] == []


def test_metrics_are_read_by_labelled_namespaces_on_the_port_of_the_probes() -> None:
    (kustomization,) = _documents("prometheus/kustomization.yaml")
    (policy,) = _documents("prometheus/network_policy.yaml")
    (deployment,) = _documents("forwarder.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (allowed,) = policy["spec"]["ingress"]

    assert kustomization["resources"] == ["network_policy.yaml"]
    assert _isolates_the_forwarder(policy, "Ingress")
    assert allowed["from"] == [
        {"namespaceSelector": {"matchLabels": {"dovetail.dev/scrapes": "true"}}}
    ]
    assert [port["port"] for port in allowed["ports"]] == [
        port["containerPort"] for port in container["ports"]
    ]


def test_the_forwarder_may_be_held_to_names_https_and_its_credentials() -> None:
    (kustomization,) = _documents("egress/kustomization.yaml")
    (policy,) = _documents("egress/network_policy.yaml")
    anywhere, credentials = policy["spec"]["egress"]

    assert kustomization["resources"] == ["network_policy.yaml"]
    assert _isolates_the_forwarder(policy, "Egress")
    assert {(entry["protocol"], entry["port"]) for entry in anywhere.pop("ports")} == {
        ("UDP", 53),
        ("TCP", 53),
        ("TCP", 443),
    }
    assert anywhere == {}
    assert [credential["ipBlock"]["cidr"] for credential in credentials["to"]] == [
        "169.254.170.23/32",
        "fd00:ec2::23/128",
    ]
    assert credentials["ports"] == [{"protocol": "TCP", "port": 80}]


def test_the_forwarder_is_critical_confined_and_never_on_a_dovetail_node() -> None:
    (deployment,) = _documents("forwarder.yaml")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    affinity = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert pod["priorityClassName"] == "system-cluster-critical"
    assert affinity["nodeSelectorTerms"] == [
        {
            "matchExpressions": [
                {"key": "karpenter.sh/provisioner-name", "operator": "DoesNotExist"},
                {"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"},
            ]
        },
        # Nodes of EKS Auto Mode have the label of a NodePool and are not Dovetail's.
        {
            "matchExpressions": [
                {"key": "eks.amazonaws.com/compute-type", "operator": "In", "values": ["auto"]}
            ]
        },
    ]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"key": "CriticalAddonsOnly", "operator": "Exists"} in pod["tolerations"]
    assert "livenessProbe" in container
    assert "memory" in container["resources"]["limits"]
