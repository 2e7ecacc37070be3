"""AWSNodeTemplates: what a Provisioner's `providerRef` names, read with the model of `provider`."""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.manifests.api.aws_node_template import AWSNodeTemplate, Provider
from shared.manifests.api.parts import read
from shared.manifests.fields import Raw, mapping, text
from shared.manifests.problems import FieldProblem, Section
from shared.model.provisioner import NodeTemplate

API_VERSION: Final = AWSNodeTemplate.definition.api_version
KIND: Final = AWSNodeTemplate.definition.kind
NO_TEMPLATES: Final[Mapping[str, Raw]] = {}


def by_name(raws: Iterable[Raw]) -> dict[str, Raw]:
    """Return AWSNodeTemplates by their names."""
    return {text(mapping(raw.get("metadata")).get("name")): raw for raw in raws}


def asks_for_templates(provisioners: Iterable[Raw]) -> bool:
    """Return whether any of these Provisioners names an AWSNodeTemplate."""
    return any(
        mapping(provisioner.get("spec")).get("providerRef") is not None
        for provisioner in provisioners
    )


def read_how_machines_are_made(spec: Section, templates: Mapping[str, Raw]) -> NodeTemplate:
    """Return what `provider` or `providerRef` of a Provisioner's spec says.

    Args:
        templates: The AWSNodeTemplates there are, by name; problems of one are noted as problems
            of the Provisioner that names it.
    """
    reference = spec.section("providerRef")
    if not spec.has("providerRef"):
        if not spec.has("provider"):
            return NodeTemplate()
        block = read(Provider, spec.raw["provider"], spec.at("provider"), spec.problems)
        return NodeTemplate() if block is None else block.node_template()
    if spec.has("provider"):
        spec.refuse("provider", "remove it or providerRef: one of them says how machines are made")
    if reference is None:
        return NodeTemplate()
    reference.refuse_unknown(("apiVersion", "kind", "name"))
    reference.text("apiVersion", choices=(API_VERSION,))
    reference.text("kind", choices=(KIND,))
    name = reference.text("name")
    if name not in templates:
        reference.refuse("name", f"there is no {KIND} of that name; make it, or name another")
        return NodeTemplate()
    return read_node_template(templates[name], spec.problems)


def template_at_fault(provisioner: Raw, problems: Iterable[FieldProblem]) -> str:
    """Return the AWSNodeTemplate a Provisioner names, empty when no problem is in it."""
    name = text(mapping(mapping(provisioner.get("spec")).get("providerRef")).get("name"))
    return name if any(problem.field.startswith(f"{KIND} {name}.") for problem in problems) else ""


def read_node_template(raw: Raw, problems: list[FieldProblem]) -> NodeTemplate:
    """Return the content of an AWSNodeTemplate; add what is wrong in it to `problems`."""
    name = text(mapping(raw.get("metadata")).get("name"))
    template = read(AWSNodeTemplate, raw, f"{KIND} {name}", problems)
    return NodeTemplate() if template is None else template.spec.node_template(name)
