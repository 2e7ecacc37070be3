"""What an installation applies in a cluster: the manifests of infra/cluster, filled in."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from functions.cli.attach.objects import ObjectKey
from shared.manifests.raw_json import Raw, mapping, mappings, text, text_map

NAMESPACE: Final = "dovetail"
FORWARDER: Final = "dovetail-forwarder"
CRD_KIND: Final = "CustomResourceDefinition"
LABELS: Final = {"app.kubernetes.io/name": "dovetail"}
# Definitions first, the forwarder last: it needs all of the others.
_ORDER: Final = (
    CRD_KIND,
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "NetworkPolicy",
    "Deployment",
)
FORWARDER_KEY: Final = ObjectKey(
    api_version="apps/v1", kind="Deployment", namespace=NAMESPACE, name=FORWARDER
)


def installation_manifests(
    documents: Iterable[Raw], *, cluster: str, image: str
) -> tuple[Raw, ...]:
    """Return the manifests to apply in the cluster, in order.

    Args:
        documents: Documents of infra/cluster; those that are not cluster objects, such as
            Kustomizations, are skipped.
        cluster: Its name, as it is attached.
        image: Image of the forwarder.
    """
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": FORWARDER, "namespace": NAMESPACE, "labels": dict(LABELS)},
        "data": {"DOVETAIL_CLUSTER": cluster},
    }
    found = [
        _filled(document, image) if ObjectKey.of(document) == FORWARDER_KEY else document
        for document in (*documents, configuration)
        if document.get("kind") in _ORDER
    ]
    return tuple(sorted(found, key=lambda document: _ORDER.index(text(document.get("kind")))))


def has_our_label(found: Raw) -> bool:
    """Return whether an object carries Dovetail's label."""
    return LABELS.items() <= text_map(mapping(found.get("metadata")).get("labels")).items()


def helm_release(found: Raw) -> str:
    """Return the Helm release that an object belongs to, empty for none.

    Source: https://helm.sh/docs/topics/v3_changes_overview (annotation and label of a release,
    2026-11).
    """
    annotations = text_map(mapping(found.get("metadata")).get("annotations"))
    return annotations.get("meta.helm.sh/release-name", "")


def _filled(deployment: Raw, image: str) -> Raw:
    spec = mapping(deployment.get("spec"))
    template = mapping(spec.get("template"))
    pod = mapping(template.get("spec"))
    containers = [{**container, "image": image} for container in mappings(pod.get("containers"))]
    inner = {**template, "spec": {**pod, "containers": containers}}
    return {**deployment, "spec": {**spec, "template": inner}}


# Metadata that the API server writes by itself, and that differs after each write.
_OF_THE_SERVER: Final = frozenset({"generation", "managedFields", "resourceVersion"})


def differences(old: Raw, new: Raw) -> tuple[str, ...]:
    """Return the paths of the fields in which two states of an object differ, sorted.

    The status and the metadata that the API server writes by itself are left out.
    """
    return tuple(sorted(_paths(_compared(old), _compared(new), "")))


def _compared(found: Raw) -> Raw:
    metadata = mapping(found.get("metadata"))
    kept = {key: value for key, value in metadata.items() if key not in _OF_THE_SERVER}
    return {key: value for key, value in found.items() if key != "status"} | {"metadata": kept}


def _paths(old: object, new: object, path: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from _paths(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _paths(before, after, f"{path}[{number}]")
    elif old != new:
        yield path
