"""NodePools and EC2NodeClasses as people write them, read as the functions read them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.instance_types.ami_families import refuse_wrong_user_data
from shared.manifests.custom_resources.node_classes import NodeClassContent, read_node_class
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.problems import FieldProblem, InvalidProvisionerError
from shared.model.provisioner import Provisioner
from tests.unit.manifests.documents import node_class, node_pool

Raw = dict[str, Any]
NODE: Final = "spec.template.spec"
DISRUPTION: Final = "spec.disruption"
CLASSES: Final = by_name([node_class()])
TAINT: Final = {"key": "team", "value": "red", "effect": "NoSchedule"}


def pool_of(spec: Raw | None = None, metadata: Raw | None = None, **more: Any) -> Provisioner:
    """Return what becomes of a NodePool: `spec` of its template, `more` beside the template."""
    return decode_node_pool(node_pool(spec, metadata, **more), CLASSES)


def pool_faults(spec: Raw | None = None, metadata: Raw | None = None, **more: Any) -> list[str]:
    """Return what is wrong with a NodePool, each as field and remedy."""
    try:
        pool_of(spec, metadata, **more)
    except InvalidProvisionerError as error:
        return _lines(error.problems)
    return []


def asks(*requirements: Raw) -> list[str]:
    """Return what is wrong with a NodePool of these requirements."""
    return pool_faults({"requirements": list(requirements)})


def disrupts(**disruption: Any) -> list[str]:
    return pool_faults(disruption=disruption)


def budgeted(*budgets: Raw) -> list[str]:
    return disrupts(budgets=list(budgets))


def class_of(**spec: Any) -> NodeClassContent:
    problems: list[FieldProblem] = []
    found = read_node_class(_without_absent(spec), problems, refuse_wrong_user_data)
    assert problems == []
    return found


def class_faults(**spec: Any) -> list[str]:
    """Return what is wrong with an EC2NodeClass; a field that is None is left out."""
    problems: list[FieldProblem] = []
    read_node_class(_without_absent(spec), problems, refuse_wrong_user_data)
    prefix = "EC2NodeClass nodes.spec."
    return [line.removeprefix(prefix) for line in _lines(problems)]


def each_is_refused(found: Mapping[str, Sequence[str]], field: str, words: str) -> None:
    """Check that each document has one fault, in this field and with these words of remedy."""
    for document, faults in found.items():
        assert len(faults) == 1, (document, faults)
        assert faults[0].startswith(f"{field}: "), (document, faults)
        assert words in faults[0], (document, faults)


def _without_absent(spec: Raw) -> Raw:
    raw = node_class()
    given = {**raw["spec"], **spec}
    return {**raw, "spec": {name: value for name, value in given.items() if value is not None}}


def _lines(problems: Sequence[FieldProblem]) -> list[str]:
    return [f"{problem.field}: {problem.remedy}" for problem in problems]
