"""Fields of EC2NodeClasses: what is taken, and what is refused with the field and a remedy."""

from typing import Any

import pytest

from shared.manifests.api.selector_map import selector_of
from shared.model.quantity import parse_quantity
from tests.karpenter_cases.v1.reading import class_faults, class_of, each_is_refused

OWN = {"tags": {"team": "red"}}
TERMS = ("subnetSelectorTerms", "securityGroupSelectorTerms")
OWN_IMAGE: dict[str, Any] = {"amiSelectorTerms": [{"id": "ami-1"}], "amiFamily": "AL2023"}


def images(*terms: dict[str, Any], family: str | None = "AL2023") -> list[str]:
    return class_faults(amiSelectorTerms=list(terms), amiFamily=family)


def alias(text: str, family: str | None = None) -> list[str]:
    return images({"alias": text}, family=family)


def disk(device: str = "/dev/xvda", *, root: bool = False, **ebs: Any) -> dict[str, Any]:
    return {"deviceName": device, "rootVolume": root, "ebs": {"volumeSize": "20Gi", **ebs}}


def kubelet(**fields: Any) -> list[str]:
    return class_faults(kubelet=fields)


def test_exactly_one_of_role_and_profile_is_named() -> None:
    assert class_faults(role="nodes", instanceProfile=None) == []
    assert class_faults(role=None, instanceProfile="nodes") == []
    found = {
        "both": class_faults(role="nodes", instanceProfile="nodes"),
        "neither": class_faults(role=None, instanceProfile=None),
    }
    each_is_refused(found, "role", "write exactly one of role and instanceProfile")
    each_is_refused({"": class_faults(role="", instanceProfile=None)}, "role", "write a name")


def test_a_role_may_become_another_and_a_profile() -> None:
    steps = [{"role": "one"}, {"role": "two"}, {"instanceProfile": "three"}, {"role": "one"}]
    empty = {"role": None, "instanceProfile": None}
    assert [class_faults(**{**empty, **step}) for step in steps] == [[]] * len(steps)


def test_the_families_are_those_of_linux() -> None:
    for family in ("AL2", "AL2023", "Bottlerocket", "Custom"):
        assert images({"id": "ami-1"}, family=family) == []
    found = {"Ubuntu": images({"id": "ami-1"}, family="Ubuntu")}
    each_is_refused(found, "amiFamily", "use one of AL2, AL2023, Bottlerocket, Custom")
    windows = {
        name: images({"id": "ami-1"}, family=name) for name in ("Windows2019", "Windows2022")
    }
    each_is_refused(windows, "amiFamily", "use a managed node group")


def test_beside_an_alias_stands_its_own_family_or_custom() -> None:
    assert alias("al2023@latest", "AL2023") == alias("al2023@latest", "Custom") == []
    each_is_refused(
        {"other": alias("al2023@latest", "AL2")}, "amiFamily", "write AL2023, as the alias"
    )


def test_without_an_alias_a_family_is_needed() -> None:
    found = {"neither": images({"id": "ami-1"}, family=None)}
    each_is_refused(found, "amiFamily", "write the family that decides")


def test_tags_are_free_but_those_of_the_autoscaler() -> None:
    assert class_faults(tags={}) == []
    assert class_of(tags={"cost-centre": "7"}).template.tags == {"cost-centre": "7"}
    for name in (
        "eks:eks-cluster-name",
        "kubernetes.io/cluster/demo",
        "karpenter.sh/nodepool",
        "karpenter.sh/nodeclaim",
        "karpenter.k8s.aws/ec2nodeclass",
        "AWS:cost-centre",
    ):
        each_is_refused(
            {name: class_faults(tags={name: "x"})}, f"tags.{name}", "set by the autosca"
        )


@pytest.mark.parametrize(
    ("term", "selector"),
    [(OWN, {"team": "red"}), ({"id": "subnet-1"}, {"aws-ids": "subnet-1"})],
    ids=["tags", "id"],
)
def test_subnets_are_chosen_by_tags_or_by_id(
    term: dict[str, Any], selector: dict[str, str]
) -> None:
    found = class_of(subnetSelectorTerms=[term]).template
    assert found.subnet_selector == selector_of(selector)


EMPTY_TERMS: dict[str, tuple[Any, str]] = {
    "absent": (None, ""),
    "none": ([], ""),
    "empty term": ([{}], "[0]"),
    "empty map": ([{"tags": {}}], "[0].tags"),
    "empty key": ([{"tags": {"": "x"}}], "[0].tags."),
    "empty value": ([{"tags": {"a": ""}}], "[0].tags.a"),
}


def empty_terms_are_refused(field: str) -> None:
    for name, (terms, place) in EMPTY_TERMS.items():
        each_is_refused({name: class_faults(**{field: terms})}, f"{field}{place}", "write ")


def test_a_choice_of_subnets_says_something() -> None:
    empty_terms_are_refused("subnetSelectorTerms")


def test_a_wrong_term_is_refused_behind_right_ones() -> None:
    found = {"last": class_faults(subnetSelectorTerms=[OWN, {"id": "subnet-1"}, {"id": "sg-1"}])}
    each_is_refused(found, "subnetSelectorTerms[2].id", "an id that begins with subnet-")


def test_an_id_stands_alone() -> None:
    found = {"both": class_faults(subnetSelectorTerms=[{**OWN, "id": "subnet-1"}])}
    each_is_refused(found, "subnetSelectorTerms[0]", "exactly one of tags or id")


def test_security_groups_are_chosen_by_one_thing() -> None:
    field = "securityGroupSelectorTerms"
    for term in (OWN, {"id": "sg-1"}, {"name": "nodes"}):
        assert class_faults(**{field: [term]}) == []
    empty_terms_are_refused(field)
    each_is_refused(
        {"last": class_faults(**{field: [OWN, {"id": "subnet-1"}]})}, f"{field}[1].id", "with sg-"
    )
    pairs: list[dict[str, Any]] = [
        {**OWN, "id": "sg-1"},
        {**OWN, "name": "n"},
        {"id": "sg-1", "name": "n"},
    ]
    found = {str(sorted(term)): class_faults(**{field: [term]}) for term in pairs}
    each_is_refused(found, f"{field}[0]", "exactly one of tags, id or name")


@pytest.mark.parametrize(
    "term",
    [
        {"alias": "al2023@latest"},
        OWN,
        {"id": "ami-1"},
        {"name": "mine-*"},
        {"name": "mine-*", "owner": "self"},
        {**OWN, "owner": "123456789012"},
        {"ssmParameter": "/mine"},
    ],
    ids="-".join,
)
def test_images_are_chosen_by_what_names_them(term: dict[str, Any]) -> None:
    assert images(term) == []


def test_alias_and_id_leave_nothing_to_choose() -> None:
    alone = {"alias": {"alias": "al2023@latest"}, "id": {"id": "ami-1"}}
    for name, term in alone.items():
        found = {
            str(more): images({**term, **more})
            for more in (OWN, {"name": "n"}, {"owner": "self"}, {"ssmParameter": "/mine"})
        }
        each_is_refused(found, "amiSelectorTerms[0]", f"{name} leaves nothing to select")
    beside = {"term": images(alone["alias"], {"id": "ami-1"})}
    each_is_refused(beside, "amiSelectorTerms[0].alias", "an alias must be the only term")


@pytest.mark.parametrize("family", ["al2", "al2023", "bottlerocket"])
@pytest.mark.parametrize("version", ["latest", "v20260120"])
def test_an_alias_has_the_latest_or_a_fixed_version(family: str, version: str) -> None:
    found = class_of(amiSelectorTerms=[{"alias": f"{family}@{version}"}]).template
    assert found.image_version == version.removeprefix("latest")


def test_an_alias_is_a_family_with_a_version() -> None:
    found = {
        text: alias(text)
        for text in ("al2023", "@latest", "al2023@", "al2023:latest", "ubuntu@latest")
    }
    each_is_refused(found, "amiSelectorTerms[0].alias", "write family@version")
    pinned = {text: alias(text) for text in ("windows2022@latest", "windows2022@1")}
    each_is_refused(pinned, "amiSelectorTerms[0].alias", "use a managed node group")


def test_a_wrong_choice_of_reservations_is_refused() -> None:
    wrong = (
        {"id": "x-1"},
        {"id": "cr-1", **OWN},
        {"id": "cr-1", "ownerID": "123456789012"},
        {"id": "cr-1", "instanceMatchCriteria": "open"},
        {"ownerID": "123456789012"},
        {**OWN, "ownerID": "1"},
        {"instanceMatchCriteria": "any"},
    )
    found = {str(term): class_faults(capacityReservationSelectorTerms=[term]) for term in wrong}
    each_is_refused(found, "capacityReservationSelectorTerms", "EC2 uses open ones by itself")


def test_the_metadata_service_takes_its_values() -> None:
    values: dict[str, tuple[list[Any], list[Any]]] = {
        "httpEndpoint": (["enabled", "disabled"], ["on"]),
        "httpProtocolIPv6": (["enabled", "disabled"], ["on"]),
        "httpTokens": (["required", "optional"], ["never"]),
        "httpPutResponseHopLimit": ([1, 64], [0, 65]),
    }
    for name, (right, wrong) in values.items():
        assert [class_faults(metadataOptions={name: value}) for value in right] == [[], []]
        found = {str(value): class_faults(metadataOptions={name: value}) for value in wrong}
        each_is_refused(found, f"metadataOptions.{name}", "")


def test_one_disk_at_most_is_the_root() -> None:
    other = disk("/dev/xvdb")
    assert class_faults(blockDeviceMappings=[disk(), other]) == []
    assert class_faults(blockDeviceMappings=[disk(root=True), other]) == []
    found = {
        "two": class_faults(blockDeviceMappings=[disk(root=True), {**other, "rootVolume": True}])
    }
    each_is_refused(found, "blockDeviceMappings[1].rootVolume", "keep one of them")


def sized(size: str) -> list[str]:
    return class_faults(blockDeviceMappings=[disk(volumeSize=size)])


def test_a_disk_has_a_size_that_ec2_makes() -> None:
    assert [sized(size) for size in ("4Gi", "100G", "2T")] == [[]] * 3
    (device,) = class_of(blockDeviceMappings=[disk(volumeSize="100G")]).template.block_devices
    assert device.volume_size_gib == -(-parse_quantity("100G") // 2**30)
    found = {size: sized(size) for size in ("0Gi", "65T", "large")}
    each_is_refused(found, "blockDeviceMappings[0].ebs.volumeSize", "write a size from 1Gi")


def test_a_wrong_rate_of_initialization_is_refused() -> None:
    found = {
        str(ebs): class_faults(blockDeviceMappings=[disk(**ebs)])
        for ebs in (
            {"snapshotID": "snap-1", "volumeInitializationRate": 50},
            {"snapshotID": "snap-1", "volumeInitializationRate": 400},
            {"volumeInitializationRate": 200},
        )
    }
    each_is_refused(found, "blockDeviceMappings[0].ebs.volumeInitializationRate", "at EC2's own r")


def test_time_limits_of_connections_are_refused() -> None:
    limits = {"tcpEstablishedTimeout": (59, 432_001), "udpStreamTimeout": (59, 181)}
    wrong = [{}, *({name: value} for name, pair in limits.items() for value in pair)]
    wrong += [{"udpTimeout": 29}, {"udpTimeout": 61}]
    found = {str(value): class_faults(connectionTracking=value) for value in wrong}
    each_is_refused(found, "connectionTracking", "instances keep the time limits of EC2")


def test_nested_virtualization_is_refused() -> None:
    found = {"maybe": class_faults(cpuOptions={"nestedVirtualization": "maybe"})}
    each_is_refused(found, "cpuOptions", "instances keep the CPU options of their type")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"kubeReserved": {"gpu": "1"}}, "kubeReserved.gpu"),
        ({"systemReserved": {"cpu": "-1"}}, "systemReserved.cpu"),
        ({"evictionHard": {"disk": "1%"}}, "evictionHard.disk"),
        ({"evictionSoft": {"memory.available": "1%"}}, "evictionSoftGracePeriod.memory.available"),
        (
            {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50},
            "imageGCHighThresholdPercent",
        ),
    ],
    ids=["unknown", "negative", "signal", "grace", "images"],
)
def test_wrong_settings_of_the_kubelet_are_refused(fields: dict[str, Any], place: str) -> None:
    each_is_refused({place: kubelet(**fields)}, f"kubelet.{place}", "")
