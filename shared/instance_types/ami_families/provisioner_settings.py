"""Adds the settings of nodes in user data to Provisioners, as if they were in their manifests."""

from collections.abc import Iterator
from typing import Final

from shared.instance_types.ami_families.families import family_of
from shared.instance_types.ami_families.node_settings import NodeSettings, merged_kubelet_settings
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import ManifestSettings, Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.values import replace

_KUBELET: Final = {
    OwnerKind.PROVISIONER: "spec.kubeletConfiguration",
    OwnerKind.NODE_POOL: "spec.kubelet",
}
# Suffix of taints that an agent on the node removes, such as that of a CSI driver.
_OF_AGENTS: Final = "not-ready"


def with_user_data_settings(provisioner: Provisioner) -> Provisioner:
    """Return the Provisioner with the kubelet settings, labels and taints of its user data.

    Its manifests take precedence, except over kubelet flags, which override all configuration. A
    setting of user data that cannot be read becomes a warning.
    """
    template = provisioner.template
    if not template.user_data.strip():
        return provisioner
    found = family_of(template.ami_family).settings(template.user_data)
    known_keys = {requirement.key for requirement in provisioner.requirements} | {
        *provisioner.labels
    }
    labels = {key: value for key, value in found.labels.items() if key not in known_keys}
    lasting, passing = _new_taints(provisioner, found)
    below = replace(
        provisioner.kubelet, **merged_kubelet_settings(found.kubelet_defaults, provisioner.kubelet)
    )
    result = replace(
        provisioner,
        labels={**provisioner.labels, **labels},
        requirements=provisioner.requirements.merge(
            Requirements.of([Requirement.of(key, value) for key, value in labels.items()])
        ),
        taints=(*provisioner.taints, *lasting),
        startup_taints=(*provisioner.startup_taints, *passing),
        kubelet=replace(below, **merged_kubelet_settings(below, found.kubelet_overrides)),
        template=replace(template, instance_store=template.instance_store or found.instance_store),
        warnings=(*provisioner.warnings, *_unread(provisioner, found)),
    )
    written = _shape(provisioner)
    return result if _shape(result) == written else replace(result, written=written)


def _shape(provisioner: Provisioner) -> ManifestSettings:
    return ManifestSettings(
        labels=provisioner.labels,
        taints=provisioner.taints,
        startup_taints=provisioner.startup_taints,
        kubelet=provisioner.kubelet,
        instance_store=provisioner.template.instance_store,
    )


def _new_taints(
    provisioner: Provisioner, found: NodeSettings
) -> tuple[tuple[Taint, ...], tuple[Taint, ...]]:
    """Return the lasting taints, and those that agents remove, which the manifests do not have."""
    named = {
        (taint.key, taint.effect) for taint in (*provisioner.taints, *provisioner.startup_taints)
    }
    new = [taint for taint in found.taints if (taint.key, taint.effect) not in named]
    return (
        tuple(taint for taint in new if not taint.key.endswith(_OF_AGENTS)),
        tuple(taint for taint in new if taint.key.endswith(_OF_AGENTS)),
    )


def _unread(provisioner: Provisioner, found: NodeSettings) -> Iterator[str]:
    dialect, name = provisioner.dialect, provisioner.template.name
    field = f"{dialect.template_kind} {name}: spec.userData" if name else "spec.provider.userData"
    for place in found.unread:
        yield (
            f"{field}: {place}: not read: what it sets on the kubelet is not counted; set it in "
            f"{_KUBELET[provisioner.kind]}"
        )
