"""Provisioners and NodePools in manifest files, with the objects that they name."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from functions.cli.plan.reading.checks import checked_metadata, raise_first_problem
from functions.cli.plan.reading.documents import Document
from shared.instance_types.ami_families import refuse_wrong_user_data, with_user_data_settings
from shared.instance_types.catalog import Catalog
from shared.manifests.custom_resources.node_classes import read_node_class
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name, read_node_template
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import FieldProblem, InvalidProvisionerError
from shared.manifests.raw_json import Raw
from shared.model import labels as keys
from shared.model.dialect import V1, V1ALPHA5
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.nodes.join.node_objects import region_of
from shared.planning.provisioner_problems import requirement_warnings
from shared.planning.rules.provisioner_offerings import address_warnings

OWNERS: Final = (V1ALPHA5.owner_kind, V1.owner_kind)
# Versions that are read as the next version, with its defaults.
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
        InvalidDocumentError: For the first wrong field of one, or of an AWSNodeTemplate or
            EC2NodeClass, or if two have the same name.
    """
    templates = _checked_templates(documents)
    classes = _checked_classes(documents, notes)
    found: list[Provisioner] = []
    first: dict[str, Document] = {}
    for document in documents:
        if document.kind not in OWNERS:
            continue
        checked_metadata(document)
        other = first.setdefault(document.name, document)
        if other.kind != document.kind:
            remedy = f"a {other.kind} of that name is in {other.where}: rename one of them"
            raise document.invalid("metadata.name", document.name, remedy)
        try:
            if document.kind == V1.owner_kind:
                read = decode_node_pool(document.raw, classes)
            else:
                read = decode_provisioner(document.raw, templates, check=refuse_wrong_user_data)
        except InvalidProvisionerError as error:
            raise_first_problem(document, list(error.problems))
        else:
            found.append(with_user_data_settings(read))
    earlier_notes = frozenset(notes)
    notes.extend(_notes(found, catalog, earlier_notes))
    return tuple(sorted(found, key=lambda entry: entry.name))


def _checked_templates(documents: Iterable[Document]) -> dict[str, Raw]:
    named = [document for document in documents if document.kind == V1ALPHA5.template_kind]
    for document in named:
        problems: list[FieldProblem] = []
        checked_metadata(document)
        read_node_template(document.raw, problems, refuse_wrong_user_data)
        raise_first_problem(document, problems)
    return by_name(document.raw for document in named)


def _checked_classes(documents: Iterable[Document], notes: list[str]) -> dict[str, Raw]:
    named = [document for document in documents if document.kind == V1.template_kind]
    for document in named:
        problems: list[FieldProblem] = []
        checked_metadata(document)
        found = read_node_class(document.raw, problems, refuse_wrong_user_data)
        raise_first_problem(document, problems)
        notes.extend(f"{document.kind} {document.name}: {text}" for text in found.warnings)
    return by_name(document.raw for document in named)


def _notes(
    found: Iterable[Provisioner], catalog: Catalog, earlier_notes: Container[str]
) -> Iterator[str]:
    """Yield notes on Provisioners and NodePools, without those on EC2NodeClasses."""
    for provisioner in found:
        misspelled = requirement_warnings(provisioner, catalog.instance_types)
        warnings = [warning for warning in provisioner.warnings if warning not in earlier_notes]
        address_notes = address_warnings(provisioner, catalog.instance_types)
        for text in (*warnings, *misspelled, *address_notes):
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
