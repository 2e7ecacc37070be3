"""`dovetail plan` knows no subnets: it is told of the zones, or says that it takes all."""

import json
from pathlib import Path

import pytest

from tests.unit.cli import dumps
from tests.unit.cli.running import PROVISIONER, deployment, run, written

SPREAD = {
    "topologyKey": "topology.kubernetes.io/zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
SUBNETS = {
    "Subnets": [
        {
            "SubnetId": f"subnet-{letter}",
            "AvailabilityZone": f"us-east-1{letter}",
            "Tags": [{"Key": "Name", "Value": f"{use}-{letter}"}, {"Key": use, "Value": ""}],
        }
        for letter, use in (("a", "private"), ("b", "private"), ("c", "public"))
    ]
}


def template(**selector: str) -> dict[str, object]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": "default"},
        "spec": {"subnetSelector": selector, "securityGroupSelector": {"a": "b"}},
    }


def zones(out: str) -> list[str]:
    """Return the zones of planned nodes, sorted."""
    return sorted({node["options"][0]["zone"][-1] for node in json.loads(out)["nodes"]})


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Return the options of a plan of pods that are spread over zones."""
    return "-f", written(
        tmp_path / "a.yaml",
        PROVISIONER,
        deployment(replicas=6, topologySpreadConstraints=[SPREAD]),
    )


@pytest.mark.parametrize("given", ["us-east-1a,us-east-1c", "c, a"])
def test_nodes_are_in_the_zones_that_are_given(
    given: str, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", *files, "--zones", given, "--output", "json") == 0
    told = capsys.readouterr()
    assert zones(told.out) == ["a", "c"]
    assert "subnets are not known here" not in told.err


def test_without_zones_all_are_taken_with_a_note_unless_each_provisioner_names_some(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", *files, "--output", "json") == 0
    told = capsys.readouterr()
    assert len(zones(told.out)) > 2
    assert (
        "note: subnets are not known here: nodes of Provisioner default may be in any zone (us-"
        in (told.err)
    )
    named = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1b"]}
    spec = {"requirements": [*PROVISIONER["spec"]["requirements"], named]}  # type: ignore[index]
    own = written(tmp_path / "b.yaml", {**PROVISIONER, "spec": spec}, deployment())
    assert run("plan", "-f", own) == 0
    assert "subnets are not known here" not in capsys.readouterr().err


@pytest.mark.parametrize("zone", ["unknown", "given", "named"])
def test_a_spread_over_unknown_zones_reaches_none_that_sells_only_accelerators(
    zone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the fifth generation, us-east-1e sells p5.4xlarge alone."""
    letters = [f"us-east-1{letter}" for letter in "abcdef"]
    named = [dumps.needs("topology.kubernetes.io/zone", *letters)] if zone == "named" else []
    pool = dumps.node_pool("g5", dumps.needs("karpenter.k8s.aws/instance-generation", "5"), *named)
    workload = deployment(replicas=6, topologySpreadConstraints=[SPREAD])
    file = written(tmp_path / "a.yaml", pool, dumps.NODE_CLASS, workload)
    options = ("--zones", "a,b,c,d,e,f") if zone == "given" else ()
    assert run("plan", "-f", file, *options, "--output", "json") == 0
    said = capsys.readouterr()
    assert ("e" in zones(said.out)) == (zone != "unknown")
    note = "NodePool g5: not in us-east-1e, where it could launch only bare metal or accelerators"
    assert (note in said.err) == (zone == "unknown")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"private": "*"}, ["a", "b"]),
        ({"Name": "private-?"}, ["a", "b"]),
        ({"Name": "*-c, private-b"}, ["b", "c"]),
        ({"private": "*", "Name": "*-b"}, ["b"]),
        ({"aws-ids": "subnet-a,subnet-c"}, ["a", "c"]),
        ({}, ["a", "b", "c"]),
    ],
    ids=("tag", "wildcard", "two values", "two tags", "ids", "none"),
)
def test_each_provisioner_has_the_subnets_that_its_template_selects(
    selector: dict[str, str],
    expected: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    owner = {**PROVISIONER, "spec": {**PROVISIONER["spec"], "providerRef": {"name": "default"}}}  # type: ignore[dict-item]
    workload = deployment(replicas=6, topologySpreadConstraints=[SPREAD])
    some = (template(**selector), owner) if selector else (PROVISIONER,)
    file = written(tmp_path / "a.yaml", *some, workload)
    subnets = tmp_path / "subnets.json"
    subnets.write_text(json.dumps(SUBNETS))
    assert run("plan", "-f", file, "--subnets", str(subnets), "--output", "json") == 0
    assert zones(capsys.readouterr().out) == expected


def test_a_provisioner_that_selects_none_of_the_subnets_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = {**PROVISIONER, "spec": {**PROVISIONER["spec"], "providerRef": {"name": "default"}}}  # type: ignore[dict-item]
    file = written(tmp_path / "a.yaml", template(private="*", Name="*-c"), owner, deployment())
    subnets = tmp_path / "subnets.json"
    subnets.write_text(json.dumps(SUBNETS))
    assert run("plan", "-f", file, "--subnets", str(subnets)) == 3
    assert "no subnet is found by Name=*-c, private=*" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "content", "told"),
    [
        ("--zones", "eu-west-1a", "--zones eu-west-1a: write zones of the catalogue: us-east-1a, "),
        ("--zones", " ,", "--zones  ,: write zones of the catalogue: us-east-1a, "),
        (
            "--subnets",
            "{",
            "holds no subnet of us-east-1, whose prices these are; write the output",
        ),
        ("--subnets", '{"Subnets": []}', "holds no subnet of us-east-1"),
    ],
)
def test_zones_and_subnets_that_cannot_be_used_are_refused(
    option: str,
    content: str,
    told: str,
    files: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    subnets = tmp_path / "subnets.json"
    subnets.write_text(content)
    given = content if option == "--zones" else str(subnets)
    assert run("plan", *files, option, given) == 2
    assert told.replace("  ", " ") in capsys.readouterr().err
