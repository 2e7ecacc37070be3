"""`dovetail report` on three dumps: a cluster of Karpenter, node groups, and a migration."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from functions.cli.catalog_runtime import MadeCatalog
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.running_cluster import read_running_cluster
from functions.cli.report import report_command
from functions.cli.report.cost_report import Alternative
from shared.instance_types.catalog import embedded_catalog, embedded_text
from tests.unit.cli.dumps import (
    DUMPS,
    Object,
    as_list,
    mixed,
    needs,
    node,
    node_groups,
    node_pool,
    pod,
    with_daemons,
    workload,
)
from tests.unit.cli.running import run_mounted

CATALOG = embedded_catalog()


def run(
    *words: str,
    read: Callable[[str | None, dict[str, str]], Iterable[Any]] | None = None,
    make: Callable[[str], MadeCatalog] | None = None,
) -> int:
    return run_mounted(
        lambda commands: report_command.mount_report(commands, read, make), "report", *words
    )


def written(tmp_path: Path, objects: list[Object], *words: str) -> str:
    dump, target = tmp_path / "dump.json", tmp_path / "report.html"
    dump.write_text(as_list(objects), encoding="utf-8")
    assert run("-f", str(dump), "--output", str(target), *words) == 0
    return target.read_text(encoding="utf-8")


class Text(HTMLParser):
    """The text of a page, and the tags that are still open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br"}:
            self.open.append(tag)
        self.links += [value or "" for key, value in attrs if key in {"src", "href"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def rows(page: str, caption: str) -> dict[str, list[str]]:
    """Return the rows of a table by what names them."""
    table = next(part for part in page.split("<table>") if caption in part).split("</table>")[0]
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table.split("</thead>")[1], flags=re.DOTALL):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL)
        name, *others = [" ".join(Text(cell).words) for cell in cells]
        found[name.split("  ")[0]] = others
    return found


@dataclass(frozen=True)
class Report:
    """What one run gave: the page, and what it said."""

    page: str
    said: Sequence[str]


# So that each dump is reported once.
OPTIONS = {
    "karpenter": ("--name", "prod"),
    "node-groups": ("--set", "max_node_vcpus=4"),
    "mixed": (),
}


@pytest.fixture(scope="module")
def report_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    """Return the report of a dump by its name, made once."""

    @cache
    def made(name: str) -> Report:
        with redirect_stdout(StringIO()) as said:
            page = written(tmp_path_factory.mktemp("dump"), DUMPS[name](), *OPTIONS[name])
        return Report(page, said.getvalue().splitlines())

    return made


@pytest.fixture(params=DUMPS)
def of_dump(request: pytest.FixtureRequest, report_of: Callable[[str], Report]) -> str:
    """Return the page of each dump."""
    return report_of(request.param).page


def test_a_report_is_one_whole_page_that_fetches_nothing(of_dump: str) -> None:
    page = of_dump
    text = Text(page)
    assert text.open == []
    assert text.links == []
    assert "url(" not in page
    assert "@import" not in page
    assert "http" not in page


def test_the_same_objects_in_a_list_of_lists_give_the_same_report(
    tmp_path: Path, report_of: Callable[[str], Report]
) -> None:
    objects = mixed()
    halves = [json.loads(as_list(part)) for part in (objects[:30], objects[30:])]
    words = []
    for number, half in enumerate(halves):
        words += ["-f", str(tmp_path / f"{number}.json")]
        Path(words[-1]).write_text(json.dumps(half), encoding="utf-8")
    target = tmp_path / "r.html"
    assert run(*words, "--output", str(target)) == 0
    page = target.read_text(encoding="utf-8").replace("0.json, 1.json", "dump.json")
    assert page == report_of("mixed").page


def test_each_number_carries_its_heading_for_narrow_screens(of_dump: str) -> None:
    numbers = re.findall(r'<td class="n[^>]*>', of_dump)
    assert numbers
    assert all("data-label=" in found for found in numbers)


def cents(amount: str) -> float:
    return float(amount.split(maxsplit=1)[0].replace("$", "").replace(",", "").replace("−", "-"))


def test_pools_and_namespaces_add_up_to_what_the_cluster_costs(of_dump: str) -> None:
    page = of_dump
    ways = rows(page, "The same pods")
    for caption, column in (("of each pool", 3), ("of each namespace", 2)):
        listed = rows(page, caption)
        whole = listed.pop("All pools" if column == 3 else "All nodes")
        assert whole[column] == ways["As it runs"][1]
        assert sum(cents(row[column]) for row in listed.values()) == pytest.approx(
            cents(whole[column]), abs=0.001
        )


def test_no_way_costs_less_than_its_bound_or_more_than_the_cluster(of_dump: str) -> None:
    ways = rows(of_dump, "The same pods")
    now = cents(ways.pop("As it runs")[1])
    assert len(ways) == 4
    for row in ways.values():
        price = cents(row[1])
        assert 0 < price < now
        assert row[2] == "–" or cents(row[2]) <= price


def test_a_cluster_of_karpenter(report_of: Callable[[str], Report]) -> None:
    page, said = (found := report_of("karpenter")).page, found.said
    pools = rows(page, "of each pool")
    assert list(pools) == ["general NodePool", "batch NodePool", "All pools"]
    assert pools["batch NodePool"][0] == "4 × c5.2xlarge spot"
    assert "What prod costs, and what it could cost" in page
    assert re.search(r"would be enough: .* less, saves \$[\d,]+ a month", page)
    assert re.search(r"Up to \d+ pods would end with one node, now \d+\.", page)
    assert said[0] == "as it runs: $4.8074/h, $3,509 a month, 16 nodes"
    assert said[1].startswith("prices of 2025-03-02 in us-east-1, ")
    assert said[3].startswith(
        "repacked: $1.6216/h, 8 nodes, saves 66 % on made-up spot prices, lower bound $1.5040/h, "
        "costs 7.8 % more"
    )
    # A PodDisruptionBudget that allows nothing holds the three nodes of payments.
    assert said[2].startswith("consolidated: $1.9096/h, 10 nodes")


def test_a_report_ends_with_what_to_do(report_of: Callable[[str], Report]) -> None:
    found = report_of("karpenter")
    heading = found.page.rsplit("<h2>", 1)[1].split("</h2>")[0]
    assert heading == "What to do"
    listed = [line for line in found.said if line.startswith("action ")]
    assert len(listed) == 3
    assert re.fullmatch(
        r"action 1: NodePool general: allow spot instances beside on-demand ones: saves "
        r"\$\d\.\d{4}/h, \$\d+ a month on made-up spot prices",
        listed[0],
    )
    text = " ".join(Text(found.page).words)
    assert "what consolidation saves in NodePool batch, NodePool general, $2.6720/h" in text
    assert "kind: NodePool" in found.page
    assert "Savings overlap: do not add them." in found.page
    together = " ".join(Text(report_of("node-groups").page).words)
    assert "All edits of 3 pools together, as one plan: $0.7379/h." in together
    assert together.rstrip().count("less than what runs on made-up spot prices.") == 1


def test_the_dear_rules_are_shown_and_the_others_counted(
    tmp_path: Path, report_of: Callable[[str], Report]
) -> None:
    spreads = rows(report_of("karpenter").page, "planned again without one of its rules")
    assert set(spreads) == {"shop/web NodePool general", "search/index NodePool general"}
    assert "Of 2 rules tried, 0 cost nothing." in report_of("karpenter").page
    nodes = [node(f"n{n}", "m5.large", "a", {}) for n in range(45)]
    pods = [
        entry for n in range(45)
        for entry in workload("shop", f"w{n}", 1, nodes[n:], "1", "1Gi", nodeSelector={
            "node.kubernetes.io/instance-type": "m5.large"})
    ]  # fmt: skip
    dear = [node("x", "m5.24xlarge", "a", {})]
    page = written(tmp_path, [*nodes, *dear, *pods])
    assert "Not tried: 5 rules of shop/w" in page


def test_a_cluster_of_node_groups_names_itself(report_of: Callable[[str], Report]) -> None:
    page = report_of("node-groups").page
    assert "What stage costs, and what it could cost" in page
    pools = rows(page, "of each pool")
    assert pools["general managed node group"][0] == "15 × m5.xlarge on-demand"
    assert pools["batch eksctl node group"][0] == "2 × c5.4xlarge spot"
    assert "What the figures leave out" in page


def test_a_migration_tells_five_kinds_of_pools_and_fargate_apart(
    report_of: Callable[[str], Report],
) -> None:
    page = report_of("mixed").page
    pools = rows(page, "of each pool")
    assert set(pools) == {
        "All pools",
        "general-purpose EKS Auto Mode NodePool",
        "new NodePool",
        "nodes without a pool",
        "old Provisioner; what it may launch is taken from its nodes",
        "system managed node group",
    }
    text = " ".join(Text(page).words)
    assert "Fargate runs 2 pods, each on a node of its own." in text
    assert "The catalogue has no price for 1 × m0.xlarge: 1 node and 1 pod are" in text
    assert "1 pod without a node is in none of the figures." in text
    assert "tools/license-server-0 keeps its node in every repacking: system: needs" in text
    assert "Provisioner old is left out: spec.provider:" in text
    assert "DaemonSets that only their pods show" in text


def test_nodes_of_windows_are_left_out_as_prices_are_those_of_linux(tmp_path: Path) -> None:
    windows = node("w", "m5.large", "a", {"kubernetes.io/os": "windows"})
    on_it = pod("default", "iis", 0, "w", "1", "1Gi")
    page = written(tmp_path, [node("n", "m5.large", "a", {}), windows, on_it])
    text = " ".join(Text(page).words)
    assert "is what 1 node cost" in text
    assert "Prices are known of Linux alone: 1 node of windows and 1 pod are in none" in text


def test_what_a_dump_lacks_is_said_on_the_terminal_and_rests_on_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        node(f"n{n}", of_type, "a", {"karpenter.sh/nodepool": "web"})
        for n, of_type in enumerate(("m5.large", "m5.large", "m0.large"))
    ]
    page = written(tmp_path, [*nodes, *workload("shop", "web", 3, nodes, "100m", "1Gi")])
    lines = capsys.readouterr().out.splitlines()
    for beginning in (
        "note: The catalogue has no price for 1 × m0.large: 1 node and 1 pod are in none",
        "note: No PodDisruptionBudget was read: those of the cluster may forbid some of what",
        "note: NodePool web was not read: what it may launch is taken from its nodes, and whether",
    ):
        assert any(line.startswith(beginning) for line in lines)
    text = " ".join(Text(page).words)
    assert "only by moves that annotations allow now." in text
    assert "Nobody has to do anything" not in text


def test_a_well_packed_cluster_is_told_so(tmp_path: Path) -> None:
    labels = {"eks.amazonaws.com/nodegroup": "g"}
    full = [node("a", "c6a.large", "a", labels)]
    pods = workload("shop", "web", 1, full, "1800m", "2Gi")
    page = written(tmp_path, [*full, *pods])
    assert "could be saved without more spot: the cluster is packed well" in page
    assert "What this cluster costs" in page


def test_a_cluster_of_fargate_alone_has_a_report(tmp_path: Path) -> None:
    lone = [node("fargate-a", "", "a", {"eks.amazonaws.com/compute-type": "fargate"})]
    page = written(tmp_path, [*lone, *workload("shop", "web", 1, lone, "1", "1Gi")])
    assert rows(page, "The same pods")["As it runs"][1] == "$0.0000"


def test_where_no_node_has_a_price_that_is_said_in_place_of_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = [node("a", "m0.xlarge", "a", {})]
    page = written(tmp_path, [*unknown, *workload("shop", "web", 1, unknown, "1", "1Gi")])
    assert "packed well" not in page
    said = "no node has a known price: --live-prices asks AWS, --catalog FILE reads a catalogue"
    assert said in " ".join(Text(page).words)
    assert capsys.readouterr().out.startswith(f"{said}\n")


def test_settings_are_compared(tmp_path: Path, report_of: Callable[[str], Report]) -> None:
    variants = rows(report_of("node-groups").page, "under other settings")
    (own,) = variants.values()
    assert set(variants) == {"As asked for (max_node_vcpus=4)"}
    ways = rows(report_of("node-groups").page, "The same pods")
    all_types = next(row for name, row in ways.items() if "all c, m and r types" in name)
    assert cents(own[1]) > cents(all_types[1])
    page = written(tmp_path, [node("a", "m5.large", "a", {})], "--set", "max_node_vcpus=96")
    assert "As asked for (the settings above)" in rows(page, "under other settings")


def test_many_held_pods_nodes_and_waiting_pods_are_counted(tmp_path: Path) -> None:
    labels = {"eks.amazonaws.com/nodegroup": "g"}
    nodes = [node(f"n{number:03}", "m5.large", "a", labels) for number in range(403)]
    pods = [
        entry
        for found in nodes[:25]
        for entry in workload(
            "shop", f"web-{found['metadata']['name']}", 1, [found], "1", "1Gi",
            nodeSelector={"kubernetes.io/hostname": found["metadata"]["name"]},
        )
    ]  # fmt: skip
    waiting = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"w{number}"},
         "spec": {"containers": [{"name": "main"}]}}
        for number in range(2)
    ]  # fmt: skip
    text = " ".join(Text(written(tmp_path, [*nodes, *pods, *waiting])).words)
    assert "So do 5 more pods." in text
    assert "3 more are not drawn." in text
    assert "2 pods without a node are in none of the figures." in text


def test_prices_of_many_types_and_large_sums_are_short(tmp_path: Path) -> None:
    labels = {"eks.amazonaws.com/nodegroup": "g"}
    kinds = ("m5.large", "m5.xlarge", "m5.2xlarge", "m5.24xlarge", "g5.48xlarge")
    nodes = [node(f"n{number}", kinds[number % 5], "a", labels) for number in range(40)]
    page = written(tmp_path, nodes)
    assert rows(page, "of each pool")["g managed node group"][0].startswith(
        "8 × g5.48xlarge, 8 × m5.24xlarge, 8 × m5.2xlarge and 2 more types on-demand"
    )
    assert re.search(r"<b>\$\d{3}\.\d\d/h</b>", page)


def test_a_running_cluster_is_read_with_live_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str | None] = []

    def make(region: str) -> MadeCatalog:
        asked.append(region)
        return MadeCatalog(text=embedded_text(), region=region, deployed=False)

    def read(kubeconfig: str | None, unread: dict[str, str]) -> Iterable[Object]:
        asked.append(kubeconfig)
        unread["PodDisruptionBudget"] = "is forbidden"
        return [node("a", "m5.large", "a", {})]

    target, config = tmp_path / "r.html", tmp_path / "k.yaml"
    of_context = {"cluster": "c", "user": "u"}
    config.write_text(json.dumps({
        "current-context": "stage",
        "contexts": [{"name": name, "context": of_context} for name in ("prod", "stage")],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1"}}],
        "users": [{"name": "u", "user": {}}],
    }))  # fmt: skip
    assert run(
        "--kubeconfig", str(config), "--live-prices", "--output", str(target), read=read, make=make
    ) == 0  # fmt: skip
    assert asked == [str(config), "us-east-1"]
    page = target.read_text(encoding="utf-8")
    assert "What stage costs" in page
    assert re.search(r"Read at \d{4}-\d\d-\d\d \d\d:\d\d UTC\.", page)
    assert "those that ship with Dovetail" not in page
    assert "made-up" not in page
    denied = "PodDisruptionBudget: may not be read, so none is known: is forbidden"
    assert f"<li>{denied}</li>" in page
    assert capsys.readouterr().out.endswith(f"written to {target}\n")
    target.unlink()
    named = ("--kubeconfig", str(config), "--context", "prod", "--output", str(target))
    assert run(*named, read=read) == 0
    assert "What prod costs" in target.read_text(encoding="utf-8")
    assert run("--kubeconfig", "none", "--output", str(target), read=read) == 0
    assert "What this cluster costs" in target.read_text(encoding="utf-8")


def refused(tmp_path: Path, objects: list[Object], *words: str, **fakes: Any) -> int:
    dump = tmp_path / "dump.json"
    dump.write_text(as_list(objects), encoding="utf-8")
    return run("-f", str(dump), "--output", str(tmp_path / "r.html"), *words, **fakes)


def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(tmp_path, workload("a", "b", 1, [{"metadata": {"name": "n"}}], "1", "1Gi")) == 2
    assert "no Nodes among the objects: kubectl get nodes,pods" in capsys.readouterr().err
    assert refused(tmp_path, node_groups(), "--set", "no_such=1") == 2
    assert "unknown setting" in capsys.readouterr().err
    assert refused(tmp_path, DUMPS["karpenter"](), "--set", "preference_policy=Ignore") == 2
    assert "does not reach NodePool" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
    assert run("-f", "dump.json", "--output", str(tmp_path / "missing" / "r.html")) == 2
    assert "--output" in capsys.readouterr().err
    assert run("-f", "dump.json", "--output", str(tmp_path / "r.xlsx")) == 2
    assert ".xlsx is not written: name one of .html, .json, .csv" in capsys.readouterr().err


def test_prices_of_another_region_are_refused_with_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = node("a", "m5.large", "a", {})
    found["metadata"]["labels"]["topology.kubernetes.io/region"] = "eu-west-1"
    assert refused(tmp_path, [found]) == 2
    assert (
        "the prices are those of us-east-1; make the catalogue of the Region with `dovetail "
        "catalog --region eu-west-1 --output FILE`"
    ) in capsys.readouterr().err


def running(*objects: Object) -> Any:
    return read_running_cluster([Document(where="dump", raw=entry) for entry in objects], CATALOG)


def test_a_second_owner_of_a_name_is_taken_from_its_nodes() -> None:
    provisioner = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner",
                   "metadata": {"name": "new"}, "spec": {"providerRef": {"name": "t"}}}  # fmt: skip
    selectors = {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}
    template = {"apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate",
                "metadata": {"name": "t"}, "spec": selectors}  # fmt: skip
    pool = node_pool("new", needs("kubernetes.io/arch", "amd64"))
    objects = [entry for entry in mixed() if entry["kind"] == "EC2NodeClass"]
    found = running(
        node("n", "m5.large", "a", {}), *objects, template, provisioner, pool,
        node_pool("other"), node_pool("other"),
    )  # fmt: skip
    assert [entry.kind.value for entry in found.snapshot.provisioners] == [
        "Provisioner",
        "NodePool",
    ]
    assert "a Provisioner has this name, too" in found.notes[0]


def test_a_node_class_that_cannot_be_used_leaves_its_pools_to_their_nodes() -> None:
    broken = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
              "metadata": {"name": "default"}, "spec": {"amiFamily": "Plan9"}}  # fmt: skip
    found = running(node("n", "m5.large", "a", {}), broken, node_pool("new"))
    assert found.snapshot.provisioners == ()
    assert [note.split(" is left out")[0] for note in found.notes] == [
        "EC2NodeClass default",
        "NodePool new",
    ]


def test_claims_of_running_pods_keep_them_in_the_zones_of_their_volumes() -> None:
    data = {"namespace": "shop", "name": "data"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": data,
             "spec": {"volumeName": "v"}}  # fmt: skip
    terms = [{"matchExpressions": [needs("topology.kubernetes.io/zone", "us-east-1b")]}]
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
              "spec": {"claimRef": data,
                       "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}  # fmt: skip
    nodes = [node("n", "m5.large", "b", {})]
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("data", "x", "y")
    ]
    pods = workload("shop", "db", 1, nodes, "1", "1Gi", volumes=volumes)
    found = running(*with_daemons(nodes), *pods, claim, volume)
    (moved,) = (entry for entry in found.snapshot.bound if entry.owner.name == "db")
    assert moved.node_name == "n"
    assert moved.scheduling.volume_terms
    assert found.notes[-1] == (
        "PersistentVolumeClaim shop/x and 1 more not given: taken to fit any zone"
    )


def test_names_from_the_cluster_are_escaped(tmp_path: Path) -> None:
    nodes = [node("n", "m5.large", "a", {"eks.amazonaws.com/nodegroup": "<b>&"})]
    page = written(tmp_path, nodes, "--name", '"><script>')
    assert "<script>" not in page
    assert "&lt;b&gt;&amp;" in page


def test_the_report_is_written_for_programs_by_the_name_of_its_file(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(as_list(node_groups()), encoding="utf-8")
    for name in ("a.json", "a.csv"):
        assert run("-f", str(dump), "--output", str(tmp_path / name)) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    running = found["plans"]["as it runs"]
    head, *lines = (tmp_path / "a.csv").read_text().splitlines()
    assert head == (
        "plan,pool_kind,pool,nodes,dollars_per_hour,saved_dollars_per_hour,"
        "saving_rests_on_made_up_spot_prices"
    )
    plans = [row for row in csv.reader(lines) if not row[0].startswith("action: ")]
    assert {row[0] for row in plans} == set(found["plans"])
    for name, one in found["plans"].items():
        of_plan = [row for row in plans if row[0] == name]
        saved = running["cost_micros_per_hour"] - one["cost_micros_per_hour"]
        assert round(sum(float(row[5]) for row in of_plan) * 1_000_000) == saved
        assert ("yes" in {row[6] for row in of_plan}) == one["saving_rests_on_spot_prices"]
    assert sum(found["namespaces"].values()) == running["cost_micros_per_hour"]
    now = [line.split(",") for line in lines if line.startswith("as it runs,")]
    assert sum(int(row[3]) for row in now) == running["nodes"]
    dollars = sum(float(row[4]) for row in now)
    assert round(dollars * 1_000_000) == running["cost_micros_per_hour"]
    listed = [row for row in csv.reader(lines) if row[0].startswith("action: ")]
    assert [(round(float(row[5]) * 1_000_000), row[6] == "yes") for row in listed] == [
        (one["saving_micros_per_hour"], one["saving_rests_on_spot_prices"])
        for one in found["actions"]
    ]
    assert found["rules"][0]["workload"] == "reports/crunch"
    assert found["rules_not_tried"] == []
    assert found["spot_prices_are_made_up"]
    resting = {name for name, one in found["plans"].items() if one["saving_rests_on_spot_prices"]}
    assert resting == {name.value for name in Alternative}
    resting = {one["title"] for one in found["actions"] if one["saving_rests_on_spot_prices"]}
    assert "managed node group general: allow spot instances beside on-demand ones" in resting
    assert "managed node group general: remove 9 of 15 nodes" not in resting


def test_a_discount_holds_for_on_demand_prices_alone(tmp_path: Path) -> None:
    dump, target = tmp_path / "dump.json", tmp_path / "a.json"
    dump.write_text(as_list(mixed()), encoding="utf-8")

    def cost(*words: str) -> int:
        assert run("-f", str(dump), "--output", str(target), *words) == 0
        return int(json.loads(target.read_text())["plans"]["as it runs"]["cost_micros_per_hour"])

    whole = cost()
    assert whole / 2 <= cost("--discount", "0.5") < whole
    assert "0.5 of the list prices" in " ".join(json.loads(target.read_text())["notes"])


@pytest.mark.parametrize("wrong", ["0", "1.1", "-1", "28%", "nan"])
def test_a_discount_that_is_none_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("-f", "a", f"--discount={wrong}")
    assert f"--discount: {wrong}: write what is paid of the list price" in capsys.readouterr().err
