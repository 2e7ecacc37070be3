"""Discovery, OpenAPI, health."""

from tests.local.kube.client import Api

GROUPS = {
    "apps",
    "autoscaling",
    "batch",
    "policy",
    "discovery.k8s.io",
    "networking.k8s.io",
    "storage.k8s.io",
    "node.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "rbac.authorization.k8s.io",
    "apiextensions.k8s.io",
    "metrics.k8s.io",
}


def test_every_group_is_listed_with_its_preferred_version(api: Api) -> None:
    groups = api.get("/apis").body["groups"]
    assert {group["name"] for group in groups} == GROUPS
    versions = {group["name"]: group["preferredVersion"]["version"] for group in groups}
    assert versions == {
        **dict.fromkeys(GROUPS, "v1"),
        "autoscaling": "v2",
        "metrics.k8s.io": "v1beta1",
    }
    assert api.get("/api").body["versions"] == ["v1"]
    assert api.get("/apis/apps").body["kind"] == "APIGroup"
    assert api.get("/apis/absent").status == 404
    assert api.get("/apis/apps/v9").status == 404


def test_subresources_name_the_kind_they_take(api: Api) -> None:
    core = {resource["name"]: resource["kind"] for resource in api.get("/api/v1").body["resources"]}
    assert core["pods/eviction"] == "Eviction"
    assert core["pods/binding"] == "Binding"
    assert core["nodes/status"] == "Node"
    apps = {resource["name"]: resource for resource in api.get("/apis/apps/v1").body["resources"]}
    assert apps["deployments/scale"]["group"] == "autoscaling"


def test_openapi_names_patch_operations_and_merge_keys(api: Api) -> None:
    paths = api.get("/openapi/v3").body["paths"]
    assert {"api/v1", "apis/apps/v1"} <= paths.keys()
    address = paths["api/v1"]["serverRelativeURL"].partition("?")[0]
    document = api.get(address).body
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Pod"
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    containers = document["components"]["schemas"]["core.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert api.get("/openapi/v3/apis/absent/v1").status == 404


def test_openapi_says_what_kinds_and_fields_are_for(api: Api) -> None:
    schemas = {
        name: api.get(f"/openapi/v3/{path}").body["components"]["schemas"][name]
        for name, path in [
            ("core.PodSpec", "api/v1"),
            ("apps.Deployment", "apis/apps/v1"),
            ("autoscaling.MetricSpec", "apis/autoscaling/v2"),
            ("discovery.EndpointPort", "apis/discovery.k8s.io/v1"),
        ]
    }
    pod = schemas["core.PodSpec"]["properties"]
    assert "on the node relative to StartTime" in pod["activeDeadlineSeconds"]["description"]
    # The client says nothing of fields that are objects: their type's text is shown.
    deployment = schemas["apps.Deployment"]["properties"]
    assert deployment["spec"]["description"].startswith("DeploymentSpec is the specification")
    silent = {
        f"{name}.{key}"
        for name, schema in schemas.items()
        for key, field in schema["properties"].items()
        if not field.get("description")
    }
    assert silent == {"core.PodSpec.workloadRef"}


def test_health_and_version_are_reported(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert api.get(path).status == 200
    assert api.get("/version").body["major"] == "1"
