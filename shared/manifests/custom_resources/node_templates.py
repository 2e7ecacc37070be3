"""AWSNodeTemplates: what a Provisioner's `providerRef` names, read with the model of `provider`."""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.manifests.api.aws_node_template import AWSNodeTemplate, UserDataCheck
from shared.manifests.api.parts import read_part
from shared.manifests.problems import FieldProblem
from shared.manifests.raw_json import Raw, mapping, text
from shared.model.provisioner import NodeTemplate

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


def read_named_template(
    provisioner: Raw,
    templates: Mapping[str, Raw],
    problems: list[FieldProblem],
    check: UserDataCheck | None = None,
) -> NodeTemplate | None:
    """Return the AWSNodeTemplate that a Provisioner names, None when it names none.

    Args:
        templates: All AWSNodeTemplates, by name; problems of the named template are problems of
            the Provisioner.
        check: Check of user data; None for no check.
    """
    name = _named(provisioner)
    if not name:
        return None
    if name in templates:
        return read_node_template(templates[name], problems, check)
    remedy = f"there is no {KIND} of that name; make it, or name another"
    problems.append(FieldProblem(field="spec.providerRef.name", value=name, remedy=remedy))
    return None


def template_at_fault(provisioner: Raw, problems: Iterable[FieldProblem]) -> str:
    """Return the AWSNodeTemplate a Provisioner names, empty when no problem is in it."""
    return fault_within(KIND, _named(provisioner), problems)


def fault_within(kind: str, name: str, problems: Iterable[FieldProblem]) -> str:
    """Return the name of an object, empty when no problem is in it."""
    return name if any(problem.field.startswith(f"{kind} {name}.") for problem in problems) else ""


def read_node_template(
    raw: Raw, problems: list[FieldProblem], check: UserDataCheck | None = None
) -> NodeTemplate:
    """Return the content of an AWSNodeTemplate; add what is wrong in it to `problems`."""
    name = text(mapping(raw.get("metadata")).get("name"))
    template = read_part(AWSNodeTemplate, raw, f"{KIND} {name}", problems, check)
    return NodeTemplate() if template is None else template.spec.node_template(name)


def _named(provisioner: Raw) -> str:
    return text(mapping(mapping(provisioner.get("spec")).get("providerRef")).get("name"))
