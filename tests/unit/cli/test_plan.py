import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.unit.cli.running import (
    PROVISIONER,
    ROOT,
    catalogue,
    container,
    deployment,
    node,
    pod,
    run,
    written,
)

EXAMPLES = sorted(path.parents[1] for path in (ROOT / "examples").glob("*/expect/scenario.yaml"))
_MANY_TYPES = r" \d+ offerings, \d+ types: also [\w.-]+, [\w.-]+, [\w.-]+ and \d+ more$"


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    code = run("plan", "--output", "json", *arguments)
    return code, json.loads(capsys.readouterr().out)


def validate(name: str, document: object) -> None:
    schema = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
    jsonschema = importlib.import_module("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_planned_without_a_cluster(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = planned(capsys, "-f", str(example))
    assert code == 0
    assert document["unschedulable"] == []
    validate("plan-output", document)


def test_the_json_has_exactly_the_agreed_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(
        tmp_path / "a.yaml",
        PROVISIONER,
        deployment(replicas=20),
        pod("huge", containers=[{"name": "a", "resources": {"requests": {"cpu": "9000"}}}]),
        node(cpu="2"),
    )
    code, document = planned(capsys, "-f", file)
    assert code == 3
    validate("plan-output", document)
    assert list(document) == [
        *("version", "nodes", "existing", "unschedulable"),
        *("cost_micros_per_hour", "cost_without_jobs_micros_per_hour"),
        *("lower_bound_micros_per_hour", "bound_is_close"),
        *("preferences", "elapsed_ms"),
    ]
    first = document["nodes"][0]
    assert list(first) == [
        *("provisioner", "options", "pods", "requests", "allocatable", "price_micros_per_hour")
    ]
    assert first["price_micros_per_hour"] == first["options"][0]["price_micros_per_hour"]
    assert document["cost_micros_per_hour"] == sum(
        entry["price_micros_per_hour"] for entry in document["nodes"]
    )
    assert document["lower_bound_micros_per_hour"] <= document["cost_micros_per_hour"]
    (lost,) = document["unschedulable"]
    assert (lost["namespace"], lost["name"]) == ("default", "huge")
    assert lost["reasons"][0].startswith("default: no instance type is large enough: requests cpu")
    assert [entry["node"] for entry in document["existing"]] == ["n1"]
    placed = [
        entry["name"]
        for part in (*document["nodes"], *document["existing"])
        for entry in part["pods"]
    ]
    assert sorted(placed) == sorted(f"web-{number}" for number in range(20))


def test_yaml_says_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment())
    _, as_json = planned(capsys, "-f", file)
    assert run("plan", "-f", file, "--output", "yaml") == 0
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    as_json.pop("elapsed_ms")
    as_yaml.pop("elapsed_ms")
    assert as_yaml == as_json


def test_the_table_names_nodes_price_bound_gap_and_lost_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toleration_missing = deployment("lonely", 7, nodeSelector={"zone": "nowhere"})
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment(replicas=9), toleration_missing)
    assert run("plan", "-f", file) == 3
    told = capsys.readouterr().out
    assert "lower bound $" in told
    assert "gap " in told
    assert "m5." in told
    assert "us-east-1a" in told
    assert "7 pods without a place:" in told
    assert "default/lonely-0, default/lonely-1" in told
    assert "and 2 more" in told
    assert "needs zone in [nowhere]" in told


@pytest.mark.parametrize(("example", "times"), [("plan-node-pools", 1), ("inflate", 0)])
def test_what_the_bound_ignores_is_said_where_the_gap_is_wide(
    example: str, times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = next(path for path in EXAMPLES if path.name == "inflate").with_name(example)
    assert run("plan", "-f", str(folder)) == 0
    told = capsys.readouterr().out
    assert (
        told.count(
            "the lower bound ignores limits, weights, preferences and some rules between pods"
        )
        == times
    )


def test_the_table_says_how_many_preferences_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 1, "podAffinityTerm": term}]
    apart = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    small = [container("100m")]
    workload: Any = deployment(replicas=2, containers=small, affinity={"podAntiAffinity": apart})
    workload["spec"]["template"]["metadata"] = {"labels": {"app": "web"}}
    file = written(tmp_path / "a.yaml", PROVISIONER, workload)
    run("plan", "-f", file)
    told = capsys.readouterr().out
    assert "0 of 2 preferences of pods are kept; keeping as many as possible costs $0." in told
    run("plan", "-f", file, "--set", "preference_policy=Respect")
    assert "2 of 2 preferences of pods are kept\n" in capsys.readouterr().out


def test_what_the_manifests_make_dearer_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.24xlarge"]}
    first = {**PROVISIONER, "metadata": {"name": "a"}, "spec": {"requirements": [large]}}
    spread = {
        "topologyKey": "topology.kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    run("plan", "-f", written(tmp_path / "a.yaml", first, PROVISIONER, deployment()))
    told = capsys.readouterr().err
    assert "note: Provisioner a: its nodes cost $" in told
    assert (
        told.count("note: the lower bound and the gap are those of plans with these weights") == 1
    )
    misspelt = deployment(replicas=2, topologySpreadConstraints=[spread])
    run("plan", "-f", written(tmp_path / "b.yaml", PROVISIONER, misspelt))
    told = capsys.readouterr().err
    assert (
        "note: topology key topology.kubernetes.io/hostname of pod default/web-0 and 1 more" in told
    )
    assert "these weights" not in told


def test_a_plan_with_room_for_pods_to_come_says_what_it_costs_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = deployment(containers=[container("1500m", "2Gi")])
    file = written(tmp_path / "a.yaml", PROVISIONER, workload)
    full = written(tmp_path / "nodes.yaml", *(node(f"n{n}", cpu="100m") for n in range(10)))
    told = "room left over counts 90 % (leftover_value_percent), for the pods to come: without it $"
    run("plan", "-f", file, "--existing", full)
    roomy = capsys.readouterr().out
    run("plan", "-f", file, "--existing", full, "--set", "leftover_value_percent=0")
    tight = capsys.readouterr().out.partition(": ")[2].partition("/h")[0]
    assert f"{told}{tight[1:]}/h\n" in roomy
    run("plan", "-f", file)
    assert told not in capsys.readouterr().out


def test_a_policy_of_preferences_is_not_compared_where_it_reaches_no_provisioner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noted = {"dovetail.dev/preference-policy": "Respect"}
    own = {**PROVISIONER, "metadata": {"name": "own", "annotations": noted}}
    saved = str(tmp_path / "decision.json")
    file = written(tmp_path / "a.yaml", own, deployment())
    assert run("plan", "-f", file, "--save", saved) == 0
    for command in (("plan", "-f", file), ("replay", saved), ("what-if", saved)):
        assert run(*command, "--set", "preference_policy=Ignore") == 2
        assert capsys.readouterr().err.endswith(
            "--set preference_policy=Ignore does not reach Provisioner own (Respect), with a "
            "policy of their own: annotate each with dovetail.dev/preference-policy: Ignore\n"
        )
    both = written(tmp_path / "b.yaml", own, PROVISIONER, deployment())
    assert run("plan", "-f", both, "--save", saved) == 0
    for command in (("plan", "-f", both), ("replay", saved), ("what-if", saved)):
        assert run(*command, "--set", "preference_policy=Ignore") == 0
        told = capsys.readouterr().err
        assert "note: preference_policy=Ignore does not reach Provisioner own (Respect)" in told


def test_existing_nodes_are_filled_before_anything_is_bought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment(replicas=4))
    nodes = written(tmp_path / "nodes.yaml", node(), pod("old", nodeName="n1"))
    code, document = planned(capsys, "-f", file, "--existing", nodes)
    assert code == 0
    assert document["nodes"] == []
    assert len(document["existing"][0]["pods"]) == 4
    assert run("plan", "-f", file, "--existing", nodes) == 0
    assert "on nodes that are there:\n  n1: default/web-0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("default/web-0", "goes to new node 1 of Provisioner default: m5."),
        ("far-0", "  default: needs zone in [nowhere]"),
        ("default/old", "it is on node n1 already"),
        ("gated", "it has scheduling gates"),
        ("tiny", "goes to node n1, which has room"),
    ],
)
def test_explain_shows_why_a_pod_is_placed_on_its_node(
    asked: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(
        tmp_path / "a.yaml",
        PROVISIONER,
        deployment(replicas=2),
        deployment("far", 1, nodeSelector={"zone": "nowhere"}),
        pod("gated", schedulingGates=[{"name": "wait"}]),
        pod("tiny", containers=[{"name": "a", "resources": {"requests": {"cpu": "10m"}}}]),
        node(cpu="1050m"),
        pod("old", nodeName="n1"),
    )
    run("plan", "-f", file, "--explain", asked)
    told = capsys.readouterr().out
    assert answer in told


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("web", "default/web-0, default/web-1"),
        ("shop/web-1", "default/web-1"),
        ("zzz", "default/far-0, default/web-0"),
        ("default/fra-3", "default/far-0"),
    ],
)
def test_a_pod_that_is_not_there_is_answered_with_those_near_it(
    asked: str, near: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment("far", 1), deployment(replicas=2))
    assert run("plan", "-f", file, "--explain", asked) == 2
    assert capsys.readouterr().err == (
        f"dovetail plan: --explain {asked}: no such pod among the manifests; near it: {near}\n"
    )


def test_an_explanation_without_pods_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER)
    assert run("plan", "-f", file, "--explain", "web") == 2
    assert "near it: there is none" in capsys.readouterr().err


def test_an_explanation_does_not_spoil_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment())
    assert run("plan", "-f", file, "--output", "json", "--explain", "web-1") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["version"] == 1
    assert "default/web-1 asks for cpu 1, memory 1Gi, pods 1" in err


def test_what_a_setting_costs_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment(replicas=40))
    arguments = ("plan", "-f", file, "--set", "max_node_vcpus=2")
    assert run(*arguments) == 0
    (line,) = [value for value in capsys.readouterr().out.splitlines() if value.startswith("set ")]
    assert line.startswith("set max_node_vcpus=2: +$")
    assert line.endswith(" by default")
    assert run(*arguments, "--output", "json") == 0
    out, err = capsys.readouterr()
    assert {load["options"][0]["instance_type"] for load in json.loads(out)["nodes"]} == {
        "m5.large"
    }
    assert line in err
    assert run("plan", "-f", file, "--thorough") == 0
    assert "set thorough=true: " in capsys.readouterr().out


def test_each_of_several_settings_is_reported_with_its_own_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment(replicas=40))
    costs = {}
    for name, cap in (("capped", "2"), ("free", "96")):
        code, document = planned(
            capsys, "-f", file, "--set", "diversification_k=2", "--set", f"max_node_vcpus={cap}"
        )
        assert code == 0
        costs[name] = document["cost_micros_per_hour"]
    settings = ("--set", "max_node_vcpus=2", "--set", "diversification_k=2")
    assert run("plan", "-f", file, *settings) == 0
    told = capsys.readouterr().out
    extra = f"{(costs['capped'] - costs['free']) / 1e6:.4f}"
    assert f"set max_node_vcpus=2: +${extra}/h" in told
    assert "set diversification_k=2: " in told
    assert told.count(" without it\n") == 2
    assert "all settings: +$" in told


def test_the_picture_is_well_formed_and_names_every_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment(replicas=30), node(cpu="2"))
    picture = tmp_path / "plan.svg"
    assert run("plan", "-f", file, "--svg", str(picture), "--set", "max_node_vcpus=8") == 0
    root = ET.fromstring(picture.read_text())
    told = " ".join(root.itertext())
    assert told.count("m5.2xlarge:") >= 3
    assert "is there already" in told
    assert "default/web" in told
    capsys.readouterr()


def test_a_catalogue_of_ones_own_is_used_and_fits_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {
        "name": "x.small",
        "arch": "amd64",
        "vcpus": 2,
        "memory_mib": 4096,
        "max_pods": 10,
        "gpus": [],
        "labels": {"karpenter.k8s.aws/instance-family": "m5"},
        "overhead": {"cpu": "100m", "memory": "596Mi"},
        "offerings": [{"zone": "z", "capacity_type": "on-demand", "price_micros_per_hour": 7}],
    }
    file = catalogue(tmp_path / "catalogue.json", [row])
    validate("catalogue", yaml.safe_load(Path(file).read_text()))
    Path(file).write_text(json.dumps(yaml.safe_load(Path(file).read_text())))
    manifests = written(tmp_path / "a.yaml", PROVISIONER, deployment(replicas=2))
    _, document = planned(capsys, "-f", manifests, "--catalog", file)
    assert document["cost_micros_per_hour"] == 14
    # Capacity less overhead and nothing else.
    assert document["nodes"][0]["allocatable"] == {
        "cpu": "1900m",
        "ephemeral-storage": document["nodes"][0]["allocatable"]["ephemeral-storage"],
        "memory": "3500Mi",
        "pods": "10",
    }


def test_the_embedded_catalogue_fits_the_schema() -> None:
    file = ROOT / "shared" / "instance_types" / "embedded" / "us-east-1.json"
    document = json.loads(file.read_text())
    document["types"] = document["types"][::20]
    validate("catalogue", document)


def test_help_lists_every_setting_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run("plan", "--help")
    assert stopped.value.code == 0
    told = capsys.readouterr().out
    for line in ("max_node_vcpus=96", "diversification_k_spot=15", "type_weights=none"):
        assert line in told
    assert "in micro-dollars per hour" in told
    assert max(map(len, told.splitlines())) <= 100


def test_planning_loads_no_client_of_aws_or_kubernetes(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [PROVISIONER, pod()]}))
    program = (
        "import sys; from tests.unit.cli.running import run\n"
        f"assert run('plan', '-f', {str(file)!r}, '--zones', 'a') == 0\n"
        "heavy = {'boto3', 'botocore', 'kubernetes', 'rich', 'moto', 'aiohttp'}\n"
        "sys.exit(', '.join(sorted(heavy & sys.modules.keys())) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_plan_is_printed_although_a_file_beside_it_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment())
    assert run("plan", "-f", file, "--save", "/dev/full") == 2
    told = capsys.readouterr()
    assert "m5." in told.out
    assert told.err == (
        "dovetail plan: /dev/full: No space left on device; expected a file to write to\n"
    )


def test_the_pods_of_new_nodes_are_listed_by_the_numbers_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    web = deployment(replicas=3, affinity={"podAntiAffinity": required})
    file = written(tmp_path / "a.yaml", PROVISIONER, web)
    assert run("plan", "-f", file, "--show-pods") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("    3  1-3  ") for line in lines)
    start = lines.index("on new nodes:")
    assert lines[start + 1 : start + 4] == [f"  {n}: default/web-{n - 1}" for n in (1, 2, 3)]


def test_a_plan_says_what_the_cheapest_spot_offerings_alone_would_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spot = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]
    pool = {**PROVISIONER, "spec": {"requirements": spot}}
    large = deployment("a", 11, containers=[container("1", "2Gi")])
    small = deployment("b", 3, containers=[container("500m", "1Gi")])
    file = written(tmp_path / "a.yaml", pool, large, small)

    def table(*options: str) -> str:
        assert run("plan", "-f", file, *options) == 0
        return capsys.readouterr().out

    found = re.search(r"by the cheapest alone (\$[0-9.]+)/h", table())
    assert found is not None
    cheapest = table("--set", "diversification_k_spot=1")
    assert f": {found[1]}/h, " in cheapest.splitlines()[0]
    assert "by the cheapest alone" not in cheapest


def test_the_table_tells_offerings_from_instance_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    any_type = {**PROVISIONER, "spec": {}}
    for pool, told in ((PROVISIONER, r" \d+ offerings$"), (any_type, _MANY_TYPES)):
        run("plan", "-f", written(tmp_path / "a.yaml", pool, deployment(replicas=1)))
        (row,) = [line for line in capsys.readouterr().out.splitlines() if "on-demand  " in line]
        assert re.search(told, row), row
