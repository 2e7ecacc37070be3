"""Provisioners and NodePools among manifest files, with what they name."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from shared.ami_families import refuse_wrong_user_data, with_user_data
from shared.catalog.reading import Catalog
from shared.launching.node_objects import region_of
from shared.manifests.custom_resources.node_classes import read_node_class
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name, read_node_template
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.documents import Document
from shared.manifests.fields import Raw
from shared.manifests.problems import FieldProblem, InvalidProvisionerError
from shared.manifests.strictness import finish, metadata_of
from shared.model import labels as keys
from shared.model.dialect import V1, V1ALPHA5
from shared.model.provisioner import Provisioner
from shared.planning.provisioner_checks import requirement_warnings
from shared.scheduling.provisioner_offerings import address_warnings

OWNERS: Final = (V1ALPHA5.owner_kind, V1.owner_kind)
# Versions that are read as the one after them, with its defaults.
_READ_AS: Final = {
    (V1.owner_kind, "karpenter.sh/v1beta1"): V1.owner_version,
    (V1.template_kind, "karpenter.k8s.aws/v1beta1"): V1.template_version,
}


def as_current(document: Document, notes: list[str]) -> Document:
    """Return a document of an older version as the one it is read as; any other unchanged.

    What changed between the versions is refused later, with the field and what to write.
    """
    version = _READ_AS.get((document.kind, document.api_version))
    if version is None:
        return document
    notes.append(
        f"{document.kind} {document.name}: {document.api_version} is read as {version}, with the "
        "defaults of that version"
    )
    return replace(document, raw={**document.raw, "apiVersion": version})


def read_provisioners(
    documents: Sequence[Document], catalog: Catalog, notes: list[str]
) -> tuple[Provisioner, ...]:
    """Return the Provisioners and NodePools, sorted by name.

    Raises:
        InvalidDocumentError: For the first wrong field of one, or of what says how instances are
            launched, or if two have the same name.
    """
    templates = _checked_templates(documents)
    classes = _checked_classes(documents, notes)
    found: list[Provisioner] = []
    first: dict[str, Document] = {}
    for document in documents:
        if document.kind not in OWNERS:
            continue
        metadata_of(document)
        other = first.setdefault(document.name, document)
        if other.kind != document.kind:
            remedy = f"a {other.kind} of that name is in {other.where}: rename one of them"
            raise document.refused("metadata.name", document.name, remedy)
        try:
            if document.kind == V1.owner_kind:
                read = decode_node_pool(document.raw, classes)
            else:
                read = decode_provisioner(document.raw, templates, check=refuse_wrong_user_data)
        except InvalidProvisionerError as error:
            finish(document, list(error.problems))
        else:
            found.append(with_user_data(read))
    told = frozenset(notes)
    notes.extend(_notes(found, catalog, told))
    return tuple(sorted(found, key=lambda entry: entry.name))


def _checked_templates(documents: Iterable[Document]) -> dict[str, Raw]:
    named = [document for document in documents if document.kind == V1ALPHA5.template_kind]
    for document in named:
        problems: list[FieldProblem] = []
        metadata_of(document)
        read_node_template(document.raw, problems, refuse_wrong_user_data)
        finish(document, problems)
    return by_name(document.raw for document in named)


def _checked_classes(documents: Iterable[Document], notes: list[str]) -> dict[str, Raw]:
    named = [document for document in documents if document.kind == V1.template_kind]
    for document in named:
        problems: list[FieldProblem] = []
        metadata_of(document)
        found = read_node_class(document.raw, problems, refuse_wrong_user_data)
        finish(document, problems)
        texts = (*found.warnings, *_on_the_role(found.template.role))
        notes.extend(f"{document.kind} {document.name}: {text}" for text in texts)
    return by_name(document.raw for document in named)


def _on_the_role(role: str) -> Iterator[str]:
    if role:
        yield (
            f"spec.role: {role}: unless it is the attachment's own, name it when you attach the "
            f"cluster: npx cdk deploy -c node_roles=<cluster>:{role}"
        )


def _notes(found: Iterable[Provisioner], catalog: Catalog, told: Container[str]) -> Iterator[str]:
    """Yield notes on Provisioners and NodePools, without those on EC2NodeClasses."""
    for provisioner in found:
        misspelled = requirement_warnings(provisioner, catalog.instance_types)
        warnings = [warning for warning in provisioner.warnings if warning not in told]
        beyond = address_warnings(provisioner, catalog.instance_types)
        for text in (*warnings, *misspelled, *beyond):
            yield f"{provisioner.kind} {provisioner.name}: {text}"
    for region in sorted(_regions(found) - {catalog.region}):
        yield (
            f"these prices are of {catalog.region}: `dovetail catalog --region {region} --output "
            f"FILE` writes those of {region}, for --catalog FILE"
        )


def _regions(found: Iterable[Provisioner]) -> set[str]:
    """Return the Regions that requirements ask for, by their name or that of a zone."""
    return {
        region_of(value)
        for provisioner in found
        for requirement in provisioner.requirements
        if requirement.key in {keys.ZONE, keys.REGION} and not requirement.complement
        for value in requirement.values
        if requirement.key == keys.REGION or region_of(value) != value
    }
