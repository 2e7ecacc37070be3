"""EC2NodeClasses: what a NodePool's `nodeClassRef` names."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from shared.manifests.api.aws_node_template import UserDataCheck
from shared.manifests.api.ec2_node_class import EC2NodeClass, EC2NodeClassSpec
from shared.manifests.api.parts import read_part
from shared.manifests.api.selector_terms import LATEST
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.problems import FieldProblem
from shared.manifests.raw_json import Raw, mapping, text
from shared.model.provisioner import KubeletConfiguration, MetadataOptions, NodeTemplate

KIND: Final = EC2NodeClass.definition.kind
_AL_VERSION: Final = re.compile(rf"({LATEST}|v\d{{8}})\Z", re.ASCII)


class NodeClassContent(Struct, frozen=True, kw_only=True):
    """The content of an EC2NodeClass.

    Attributes:
        kubelet: Kubelet settings of its nodes; v1 has them here, not in the NodePool.
        warnings: Which of its settings have no effect, for people.
    """

    template: NodeTemplate = NodeTemplate()
    kubelet: KubeletConfiguration = KubeletConfiguration()
    warnings: tuple[str, ...] = ()


def read_node_classes(
    raws: Iterable[Raw], check: UserDataCheck | None = None
) -> Iterator[tuple[str, NodeClassContent, tuple[str, ...]]]:
    """Yield name, content and problems of EC2NodeClasses, sorted by name.

    Args:
        check: Check of user data; None for no check.
    """
    for name, raw in sorted(by_name(raws).items()):
        problems: list[FieldProblem] = []
        found = read_node_class(raw, problems, check)
        yield name, found, tuple(problem.public for problem in problems)


def read_named_class(
    name: str,
    classes: Mapping[str, Raw],
    problems: list[FieldProblem],
    check: UserDataCheck | None = None,
) -> NodeClassContent:
    """Return the EC2NodeClass that a NodePool names; add what is wrong to `problems`.

    Args:
        classes: All EC2NodeClasses, by name.
        check: Check of user data; None for no check.
    """
    if name in classes:
        return read_node_class(classes[name], problems, check)
    remedy = f"there is no {KIND} of that name; add its manifest, or name another"
    field = "spec.template.spec.nodeClassRef.name"
    problems.append(FieldProblem(field=field, value=name, remedy=remedy))
    return NodeClassContent()


def read_node_class(
    raw: Raw, problems: list[FieldProblem], check: UserDataCheck | None = None
) -> NodeClassContent:
    """Return the content of an EC2NodeClass; add what is wrong in it to `problems`."""
    name = text(mapping(raw.get("metadata")).get("name"))
    found = read_part(EC2NodeClass, raw, f"{KIND} {name}", problems, check)
    return NodeClassContent() if found is None else _content(name, found.spec)


def _content(name: str, spec: EC2NodeClassSpec) -> NodeClassContent:
    alias = spec.ami_selector_terms[0]
    images = () if alias.family else tuple(term.asked for term in spec.ami_selector_terms)
    template = NodeTemplate(
        name=name,
        subnet_selector=tuple(term.asked for term in spec.subnet_selector_terms),
        security_group_selector=tuple(term.asked for term in spec.security_group_selector_terms),
        instance_profile=spec.instance_profile or "",
        role=spec.role or "",
        ami_family=spec.family,
        image_family="" if alias.family == spec.family else alias.family,
        ami_selector=images,
        user_data=spec.user_data,
        tags=spec.tags,
        metadata_options=MetadataOptions(**dict(spec.metadata_options)),
        block_devices=tuple(disk.block_device for disk in spec.block_device_mappings),
        detailed_monitoring=spec.detailed_monitoring,
        context=spec.context,
        image_version="" if alias.version == LATEST else alias.version,
        instance_store=bool(spec.instance_store_policy),
        public_ip=spec.associate_public_ip_address,
    )
    return NodeClassContent(
        template=template,
        kubelet=spec.kubelet.configuration,
        warnings=tuple(_not_acted_on(spec)),
    )


def _not_acted_on(spec: EC2NodeClassSpec) -> Iterator[str]:
    """Yield a warning for each setting of a valid document that launches do not apply."""
    alias = spec.ami_selector_terms[0]
    if alias.family.startswith("AL") and not _AL_VERSION.match(alias.version):
        yield (
            f"spec.amiSelectorTerms[0].alias: {alias.alias}: versions of this family are latest "
            "and dates such as v20260120; no image may be found"
        )
    for line in spec.kubelet.configuration.left_out(spec.family):
        yield f"spec.kubelet.{line}"
    for number, disk in enumerate(spec.block_device_mappings):
        if disk.root_volume:
            yield (
                f"spec.blockDeviceMappings[{number}].rootVolume: not acted on yet: the AMI family "
                "decides to which volume pods write"
            )
