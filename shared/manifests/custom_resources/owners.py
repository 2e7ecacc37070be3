"""Reads the Provisioners and NodePools of a cluster; an invalid one does not affect the others."""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final

from shared.manifests.api.aws_node_template import UserDataCheck
from shared.manifests.custom_resources.node_templates import by_name, fault_within
from shared.manifests.custom_resources.pool_lifetimes import named_class
from shared.manifests.custom_resources.provisioners import decode_provisioners, unusable
from shared.manifests.problems import FieldProblem, InvalidProvisionerError
from shared.manifests.raw_json import Raw, mapping, text
from shared.model.dialect import V1
from shared.model.provisioner import InvalidProvisioner, Provisioner

_TAKEN: Final = (
    "a Provisioner has this name, by which nodes, tags and rows know their owner: give one of them "
    "another name, or delete the Provisioner"
)


def decode_owners(
    provisioners: Sequence[Raw],
    templates: Iterable[Raw],
    pools: Iterable[Raw],
    read_pool: Callable[[Raw], Provisioner],
    *,
    check: UserDataCheck | None = None,
) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
    """Return the Provisioners and NodePools that can be used, and those that cannot.

    Each sorted by name. Where a Provisioner and a NodePool have the same name, the NodePool cannot
    be used.

    Args:
        templates: All AWSNodeTemplates.
        pools: NodePools, without those of other providers.
        read_pool: Returns a NodePool, or raises InvalidProvisionerError.
        check: Check of user data; None for a caller that launches nothing.
    """
    found, refused = decode_provisioners(provisioners, templates, check=check)
    usable, wrong, taken = list(found), list(refused), by_name(provisioners)
    for raw in pools:
        try:
            _refuse_taken(raw, taken)
            usable.append(read_pool(raw))
        except InvalidProvisionerError as error:
            at_fault = fault_within(V1.template_kind, named_class(raw), error.problems)
            wrong.append(unusable(raw, error, V1.owner_kind, at_fault))
    return (
        tuple(sorted(usable, key=lambda entry: entry.name)),
        tuple(sorted(wrong, key=lambda entry: (entry.name, entry.kind))),
    )


def _refuse_taken(pool: Raw, taken: Container[str]) -> None:
    name = text(mapping(pool.get("metadata")).get("name"))
    if name in taken:
        fault = FieldProblem(field="metadata.name", value=name, remedy=_TAKEN)
        raise InvalidProvisionerError([fault])
