"""Services have an EndpointSlice of their pods."""

from typing import Any

from infra.local.kube.api.tables import endpoints, slice_addresses, slice_ports
from tests.local.cluster_simulator.bench import DEPLOYMENTS, Bench, template, workload
from tests.waiting import until

SERVICES = "/api/v1/namespaces/default/services"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def test_a_service_has_a_slice_of_its_pods_as_long_as_it_is_there(bench: Bench) -> None:
    bench.add_node("n0")
    bench.create(
        DEPLOYMENTS, workload("Deployment", "web", template("web", cpu="100m"), replicas=2)
    )
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    bench.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec})

    def ready() -> list[Any]:
        return [
            endpoint
            for found in bench.items(SLICES)
            for endpoint in found.get("endpoints") or ()
            if endpoint["conditions"]["ready"]
        ]

    until(lambda: len(ready()) == 2)
    (found,) = bench.items(SLICES)
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    pods = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in bench.ready_pods("web")}
    shown = {entry["targetRef"]["name"]: entry["addresses"][0] for entry in ready()}
    assert shown == pods
    assert {entry["nodeName"] for entry in ready()} == {"n0"}
    assert slice_ports(found) == "8080"
    assert slice_addresses(found) == ",".join(entry["addresses"][0] for entry in found["endpoints"])
    until(lambda: [endpoints(old).count(":8080") for old in bench.items(ENDPOINTS)] == [2])
    (old,) = bench.items(ENDPOINTS)
    assert old["metadata"]["name"] == "web"
    assert endpoints(old) == ",".join(f"{entry['addresses'][0]}:8080" for entry in ready())
    bench.call("DELETE", f"{SERVICES}/web")
    until(lambda: not bench.items(SLICES) and not bench.items(ENDPOINTS))
