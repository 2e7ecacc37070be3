"""`dovetail plan` and `dovetail replay`: decisions without a cluster and without AWS."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from functions.cli.input_error import InputError
from functions.cli.kubeconfig import add_kubeconfig
from functions.cli.parser import Subparsers, add_command, add_list, add_settings, unwritable
from functions.cli.plan.instance_settings import described_instance_settings, instance_setup
from functions.cli.plan.packing_settings import (
    BOTH_K,
    by_the_cheapest_spot,
    changed_settings,
    described_settings,
    overridden_policy_notes,
    with_settings,
    without_each_setting,
    without_headroom,
)
from functions.cli.printable_text import printable_text
from functions.cli.run_command import run_or_refuse
from shared.model.errors import InvalidManifestError

if TYPE_CHECKING:
    from functions.cli.plan.plan_text import PlanRun
    from functions.cli.plan.planned import Planned
    from functions.cli.plan.reading.documents import Document
    from functions.cli.plan.scenarios import Scenario
    from shared.instance_types.catalog import Catalog
    from shared.instance_types.instance_setup import InstanceSetup
    from shared.model.kubernetes.pods import Pod
    from shared.model.snapshot import ClusterSnapshot
    from shared.packing.problem import PackingSettings

PLACED: Final = 0
UNPLACED: Final = 3
DIFFERENT: Final = 1
INTERRUPTED: Final = 130  # as in shells: 128 plus the number of SIGINT
# Each rule is one more plan, and somebody waits.
_SECONDS_OF_RULES: Final = 60
_OF_ONE_PLAN: Final = ("explain", "show_pods", "svg", "save")
_SCENARIOS: Final = ("at", "replicas", "no_spot", "without_zone", "other_catalog")
_A_SETTING: Final = "a setting, see below; may be repeated"
_PLAN_TEXT: Final = """\
Prints the nodes Dovetail would launch for the pods that wait, with a proven lower bound.
Reads Pods, Deployments, ReplicaSets, StatefulSets, Jobs, DaemonSets, Nodes, Provisioners,
AWSNodeTemplates, NodePools and EC2NodeClasses (karpenter.sh/v1), PersistentVolumes, claims,
StorageClasses, CSINodes, Namespaces, PriorityClasses, RuntimeClasses, PodDisruptionBudgets,
HorizontalPodAutoscalers and ScaledObjects, one or many in a file, as YAML or JSON, also what
`kubectl get -o json` prints. Needs no cluster and no AWS; with --context or --kubeconfig it
reads a running cluster besides, whatever scales it, and writes nothing there.

  dovetail plan -f examples/big
  dovetail plan -f pods.yaml -f provisioner.yaml --explain default/web-0 --svg plan.svg
  kubectl get pods,nodes,provisioners --all-namespaces -o json | dovetail plan -f -
  dovetail plan --context prod -f k8s/        what a change needs beside what runs
  dovetail plan --diff old/ new/ --output markdown --max-increase 5%
  dovetail plan --diff main..HEAD -f k8s/
  dovetail plan -f k8s/ --at hpa-max --no-spot --replicas shop/web=40
"""
_REPLAY_TEXT: Final = """\
Decides again what `plan --save` wrote or S3 holds and says whether the plan comes out
byte-identical; with other settings, what they change in $, nodes and pods.

  dovetail plan -f examples/big --save plan.json.gz
  dovetail replay plan.json.gz --set max_node_vcpus=16
"""
_PLAN_CODES: Final = """exit codes, of which the first that applies:
  2  bad input: one line says which file, document and field, and what was expected
  1  with --diff: it costs more than --max-increase, also if pods are not placed
  3  pods are not placed, in any column: the plan says why; with --diff: had a place or are new
  0  every pod is placed; with --diff: that had a place or is new
  130  it was stopped by Ctrl-C
"""
_REPLAY_CODES: Final = """exit codes:
  0  the same plan, byte for byte; with --set: the difference was printed
  1  another plan
  2  bad input: one line says what and where
"""


def mount_plan(subparsers: Subparsers) -> None:
    """Add plan and replay; each parsed namespace has a `run` that returns the exit code."""
    plan = add_command(
        subparsers,
        "plan",
        "show which nodes would be launched for manifests, without a cluster and without AWS",
        _PLAN_TEXT,
        _settings_help() + _instances_help() + _PLAN_CODES,
    )
    manifests = "YAML or JSON file, folder, or - for standard input; may be repeated"
    add_list(plan, "-f", "--filename", metavar="FILE", help=manifests)
    plan.add_argument(
        "--catalog",
        metavar="FILE",
        help="types and prices, as `dovetail catalog` writes them (the embedded, of us-east-1)",
    )
    existing = "nodes that are there, and the pods on them; as -f"
    add_list(plan, "--existing", metavar="FILE", help=existing)
    add_kubeconfig(
        plan, "plan beside what this cluster has, for its pending pods too; reads it, nothing else"
    )
    where = plan.add_mutually_exclusive_group()
    where.add_argument(
        "--zones", metavar="A,B,C", help="the zones that have subnets (all of the catalogue)"
    )
    where.add_argument(
        "--subnets",
        metavar="FILE",
        help="the subnets there are, as `aws ec2 describe-subnets` writes them: selectors choose",
    )
    plan.add_argument(
        "--diff",
        nargs="+",
        metavar="SIDE",
        help="say what a change costs: two folders or files, or a range of git revisions with -f",
    )
    plan.add_argument(
        "--max-increase", metavar="AMOUNT", help="with --diff: 5%%, or dollars a month; else exit 1"
    )
    plan.add_argument(
        "--output",
        choices=("table", "json", "yaml", "markdown"),
        default="table",
        help="markdown where several plans are compared",
    )
    _add_scenarios(plan)
    plan.add_argument(
        "--cost-of-rules",
        action="store_true",
        help="say what each spread, affinity, preference and restriction to nodes costs",
    )
    plan.add_argument("--explain", metavar="NAMESPACE/POD", help="say why a pod goes where it goes")
    plan.add_argument("--show-pods", action="store_true", help="list the pods of each new node")
    plan.add_argument("--verbose", action="store_true", help="say where the prices come from")
    plan.add_argument("--svg", metavar="FILE", help="draw the nodes and what fills them")
    plan.add_argument("--save", metavar="FILE", help="write the decision, for dovetail replay")
    plan.add_argument(
        "--thorough", action="store_true", help="the same as --set thorough=true: slower, cheaper"
    )
    add_settings(plan, _A_SETTING)
    plan.set_defaults(run=_interruptible("plan", _plan))
    summary = "decide a recorded decision again"
    codes = _settings_help() + _REPLAY_CODES
    replay = add_command(subparsers, "replay", summary, _REPLAY_TEXT, codes)
    replay.add_argument("decision", metavar="DECISION", help="a file of plan --save or from S3")
    add_settings(replay, _A_SETTING)
    replay.set_defaults(run=_interruptible("replay", _replay))


def _add_scenarios(plan: argparse.ArgumentParser) -> None:
    """Add the options that each plan for other circumstances, beside today's plan."""
    group = plan.add_argument_group(
        "what would it cost if (each adds a column beside today's plan)"
    )
    group.add_argument(
        "--at",
        action="append",
        choices=("hpa-max", "hpa-min", "cron-peak"),
        help="HorizontalPodAutoscalers and ScaledObjects at their maximum or minimum; CronJobs in "
        "the hour of the week in which most of their pods start",
    )
    group.add_argument(
        "--replicas",
        action="append",
        metavar="NAMESPACE/NAME=N",
        help="a workload with other replicas, or several after commas",
    )
    group.add_argument("--no-spot", action="store_true", help="EC2 has no spot capacity")
    group.add_argument(
        "--without-zone",
        action="append",
        metavar="ZONE",
        help="the zone is lost: its nodes are gone, and their pods wait",
    )
    group.add_argument(
        "--other-catalog",
        action="append",
        metavar="FILE",
        help="other types and prices, such as those of another Region",
    )


def _instances_help() -> str:
    lines = [
        "settings of instances, as the control plane has them:",
        *_setting_lines(described_instance_settings()),
    ]
    return "\n".join(lines) + "\n\n"


def _setting_lines(settings: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    import textwrap  # noqa: PLC0415 -- argparse has it loaded; kept by its only use

    for key, default, meaning in settings:
        yield f"  {key}={default}"
        yield from textwrap.wrap(meaning, 88, initial_indent="      ", subsequent_indent="      ")


def _settings_help() -> str:
    lines = [
        "settings (--set key=value) and their defaults:",
        *_setting_lines(described_settings()),
    ]
    lines.append(f"  {BOTH_K}=N")
    lines.append("      Sets both diversification settings at once.")
    return "\n".join(lines) + "\n\n"


def _interruptible(
    name: str, command: Callable[[argparse.Namespace], int]
) -> Callable[[argparse.Namespace], int]:
    """Return the command so that bad input and an interrupt print one line."""

    def run(arguments: argparse.Namespace) -> int:
        try:
            return run_or_refuse(name, lambda: command(arguments))
        except KeyboardInterrupt:
            sys.stderr.write(f"dovetail {name}: stopped\n")
            return INTERRUPTED

    return run


# The commands import what they need when they run: `dovetail --help` needs none of it.


def _plan(arguments: argparse.Namespace) -> int:
    if arguments.diff:
        return _diff(arguments)
    if arguments.max_increase is not None:
        raise InputError(
            f"--max-increase {arguments.max_increase}: limits what a change costs: name its two "
            "sides with --diff; 5% is percent, 5 is dollars a month"
        )
    if not (arguments.filename or _names_cluster(arguments)):
        raise InputError("name manifests with -f, or a cluster with --context")
    if any(getattr(arguments, option) for option in _SCENARIOS):
        return _scenarios(arguments)
    if arguments.cost_of_rules:
        return _cost_of_rules(arguments)
    if arguments.output == "markdown":
        raise InputError("--output markdown: is for plans that are compared, as with --diff")
    return _one_plan(arguments)


def _one_plan(arguments: argparse.Namespace) -> int:
    from functions.cli.plan import plan_text  # noqa: PLC0415
    from functions.cli.plan.cheaper_types import why_not_cheaper  # noqa: PLC0415
    from functions.cli.plan.explanation import explanation  # noqa: PLC0415
    from functions.cli.plan.inputs import read_catalog  # noqa: PLC0415
    from functions.cli.plan.plan_remarks import plan_remarks  # noqa: PLC0415
    from functions.cli.plan.planned import planned  # noqa: PLC0415
    from shared.planning.decide import decide  # noqa: PLC0415
    from shared.planning.initial_state import pods_to_place  # noqa: PLC0415
    from shared.planning.lower_bound import with_bound  # noqa: PLC0415
    from shared.runtime.system import SystemClock  # noqa: PLC0415

    for option, name in (("--svg", arguments.svg), ("--save", arguments.save)):
        if why := unwritable(option, name):
            raise InputError(why)
    setup, settings = _settings(arguments)
    notes: list[str] = []
    catalog = read_catalog(arguments.catalog, setup)
    documents = _documents(arguments, arguments.filename, catalog, notes)
    snapshot = _snapshot(arguments, documents, catalog, settings, notes)
    pod = _named(arguments.explain, snapshot) if arguments.explain is not None else None
    began = time.perf_counter()
    plan = decide(snapshot, settings)
    elapsed_ms = (time.perf_counter() - began) * 1000
    plan = with_bound(snapshot, plan)
    whole = planned(snapshot, documents, plan, lambda rest: decide(rest, settings))
    without = tuple(
        (named, decide(snapshot, others)) for named, others in without_each_setting(settings)
    )
    without_headroom_settings = (
        without_headroom(settings, len(pods_to_place(snapshot))) if plan.nodes else None
    )
    cheapest = by_the_cheapest_spot(settings, plan)
    plan_run = plan_text.PlanRun(
        planned=whole,
        catalog=catalog,
        settings=settings,
        elapsed_ms=elapsed_ms,
        without_each_setting=without,
        by_default=decide(snapshot) if len(without) > 1 else None,
        without_headroom=None
        if without_headroom_settings is None
        else decide(snapshot, without_headroom_settings),
        by_cheapest_spot=None if cheapest is None else decide(snapshot, cheapest),
        show_pods=arguments.show_pods,
        today=SystemClock().now().date(),
        verbose=arguments.verbose,
    )
    explanation_lines: list[str] = []
    if pod is not None:
        cheaper = why_not_cheaper(snapshot, plan, pod, settings)
        explanation_lines += [*explanation(snapshot, plan, pod), *cheaper]
    sys.stdout.write(plan_text.plan_text(plan_run, arguments.output, explanation_lines))
    sys.stdout.flush()
    _write_files(arguments, plan_run)
    found = plan_remarks(snapshot, plan, settings)
    stderr_lines = [f"note: {note}" for note in (*notes, *found)]
    if arguments.output != "table":
        stderr_lines += [*explanation_lines, *plan_text.settings_lines(plan_run)]
    sys.stderr.write(printable_text(stderr_lines))
    return UNPLACED if plan.unschedulable else PLACED


def _diff(arguments: argparse.Namespace) -> int:
    from functions.cli.plan import scenarios  # noqa: PLC0415
    from functions.cli.plan.diff_command import run_diff  # noqa: PLC0415
    from functions.cli.plan.inputs import read_catalog  # noqa: PLC0415

    _refuse(arguments, "--diff", *_OF_ONE_PLAN, *_SCENARIOS[1:], "cost_of_rules")
    if len(arguments.at or ()) > 1:
        raise InputError("--at: give one beside --diff: both sides are planned under it")
    setup, settings = _settings(arguments)
    catalog = read_catalog(arguments.catalog, setup)
    notes: list[str] = []

    def planned_side(files: Sequence[str]) -> "Planned":
        documents = _documents(arguments, files, catalog, notes)
        try:
            asked = scenarios.asked_scenarios(arguments, documents, _time(catalog))
            scenario = next(asked, scenarios.Scenario())
        except InputError as error:
            # Only one of the sides may have what the option is about.
            notes.append(str(error))
            scenario = scenarios.Scenario()
        return _planned_under(scenario, arguments, documents, catalog, settings, notes)

    code = run_diff(arguments, planned_side)
    sys.stderr.write(printable_text(f"note: {note}" for note in dict.fromkeys(notes)))
    return code


def _settings(arguments: argparse.Namespace) -> tuple["InstanceSetup | None", "PackingSettings"]:
    from shared.packing.problem import PackingSettings  # noqa: PLC0415

    setup, others = instance_setup(arguments.settings)
    given = [*(["thorough=true"] if arguments.thorough else []), *others]
    others_known = [name for name, _, _ in described_instance_settings()]
    return setup, with_settings(PackingSettings(), given, others_known)


def _refuse(arguments: argparse.Namespace, beside: str, *options: str) -> None:
    """Refuse options that cannot be given beside another.

    Raises:
        InputError: If one of them is given.
    """
    for option in options:
        if getattr(arguments, option):
            name = option.replace("_", "-")
            raise InputError(f"--{name}: is for one plan: leave it out with {beside}")


def _scenarios(arguments: argparse.Namespace) -> int:
    from functions.cli.plan import scenarios  # noqa: PLC0415
    from functions.cli.plan.inputs import read_catalog  # noqa: PLC0415
    from functions.cli.plan.scenarios_command import scenarios_text  # noqa: PLC0415

    _refuse(arguments, "other circumstances", *_OF_ONE_PLAN, "cost_of_rules")
    setup, settings = _settings(arguments)
    notes: list[str] = []
    catalog = read_catalog(arguments.catalog, setup)
    documents = _documents(arguments, arguments.filename, catalog, notes)
    columns = []
    asked = list(scenarios.asked_scenarios(arguments, documents, _time(catalog)))
    for scenario in (scenarios.Scenario(), *asked):
        of = read_catalog(scenario.catalog, setup) if scenario.catalog else catalog
        found = _planned_under(scenario, arguments, documents, of, settings, notes)
        columns.append((scenario.name, found))
    sys.stdout.write(scenarios_text(columns, arguments.output))
    sys.stderr.write(printable_text(f"note: {note}" for note in dict.fromkeys(notes)))
    return UNPLACED if any(found.plan.unschedulable for _, found in columns) else PLACED


def _time(catalog: "Catalog") -> datetime:
    """Return the time of plans, that of the prices: the same manifests give the same plans."""
    return datetime.fromisoformat(catalog.date).replace(tzinfo=UTC)


def _planned_under(
    scenario: "Scenario",
    arguments: argparse.Namespace,
    documents: "Sequence[Document]",
    catalog: "Catalog",
    settings: "PackingSettings",
    notes: list[str],
) -> "Planned":
    """Return the plans for manifests under some circumstances; add their notes."""
    from functions.cli.plan.planned import planned  # noqa: PLC0415
    from functions.cli.plan.reading.autoscalers import with_autoscaled_replicas  # noqa: PLC0415
    from shared.planning.decide import decide  # noqa: PLC0415

    changed = scenario.of_documents(with_autoscaled_replicas(documents, notes))
    snapshot = scenario.of_snapshot(_snapshot(arguments, changed, catalog, settings, notes))
    plan = decide(snapshot, settings)
    return planned(snapshot, changed, plan, lambda rest: decide(rest, settings))


def _cost_of_rules(arguments: argparse.Namespace) -> int:
    from functions.cli.plan.cost_of_rules import costs_of_rules, rules_of, rules_text  # noqa: PLC0415
    from functions.cli.plan.inputs import read_catalog  # noqa: PLC0415
    from shared.planning.decide import decide  # noqa: PLC0415

    _refuse(arguments, "--cost-of-rules", *_OF_ONE_PLAN)
    setup, settings = _settings(arguments)
    notes: list[str] = []
    catalog = read_catalog(arguments.catalog, setup)
    documents = _documents(arguments, arguments.filename, catalog, notes)
    snapshot = _snapshot(arguments, documents, catalog, settings, notes)
    plan, rules = decide(snapshot, settings), rules_of(snapshot)
    until = time.monotonic() + _SECONDS_OF_RULES
    costs = costs_of_rules(
        snapshot,
        rules,
        plan,
        lambda without: decide(without, settings),
        lambda: time.monotonic() < until,
    )
    sys.stdout.write(rules_text(plan, costs, len(rules) - len(costs), arguments.output))
    sys.stderr.write(printable_text(f"note: {note}" for note in notes))
    return UNPLACED if plan.unschedulable else PLACED


def _names_cluster(arguments: argparse.Namespace) -> bool:
    return bool(arguments.kubeconfig or arguments.context)


def _documents(
    arguments: argparse.Namespace, files: Sequence[str], catalog: "Catalog", notes: list[str]
) -> "list[Document]":
    """Return the manifests of files, and what there is beside them."""
    from functions.cli.plan.inputs import read_all  # noqa: PLC0415

    documents = read_all([*files, *arguments.existing], notes)
    if _names_cluster(arguments):
        from functions.cli.cluster_dump import dump_cluster, unread_notes  # noqa: PLC0415
        from functions.cli.plan.reading.documents import Document  # noqa: PLC0415
        from functions.cli.plan.reading.running_cluster import usable_documents  # noqa: PLC0415

        unread: dict[str, str] = {}
        dump = dump_cluster(arguments.kubeconfig, unread, arguments.context)
        found = [Document(where="cluster", raw=raw) for raw in dump]
        notes += unread_notes(unread)
        documents += usable_documents(found, catalog, notes)
    return documents


def _snapshot(
    arguments: argparse.Namespace,
    documents: "Sequence[Document]",
    catalog: "Catalog",
    settings: "PackingSettings",
    notes: list[str],
) -> "ClusterSnapshot":
    """Return the snapshot that manifests describe, in the zones that are given; add its notes."""
    from functions.cli.plan.reading.running_cluster import refuse_another_region  # noqa: PLC0415
    from functions.cli.plan.reading.snapshot import read_snapshot  # noqa: PLC0415
    from shared.packing.problem import PackingSettings  # noqa: PLC0415

    offline = read_snapshot(documents, catalog)
    if _names_cluster(arguments):
        refuse_another_region(offline.snapshot.nodes, catalog)
    snapshot = _in_zones(offline.snapshot, arguments, catalog, notes)
    notes += overridden_policy_notes(settings, PackingSettings(), snapshot.provisioners)
    notes += offline.notes
    return snapshot


def _named(key: str, snapshot: "ClusterSnapshot") -> "Pod":
    from functions.cli.plan.explanation import find_pod, keys_near  # noqa: PLC0415

    pod = find_pod(snapshot, key)
    if pod is None:
        near = ", ".join(keys_near(snapshot, key)) or "there is none"
        raise InputError(f"--explain {key}: no such pod among the manifests; near it: {near}")
    return pod


def _in_zones(
    snapshot: "ClusterSnapshot",
    arguments: argparse.Namespace,
    catalog: "Catalog",
    notes: list[str],
) -> "ClusterSnapshot":
    """Return the snapshot limited to `--zones`, `--subnets` or the zones of a running cluster.

    Else zones are assumed. Notes say what is not given.
    """
    from functions.cli.plan.inputs import read_bytes  # noqa: PLC0415
    from functions.cli.plan.reading import subnets  # noqa: PLC0415

    if arguments.zones is not None:
        return subnets.within_zones(snapshot, subnets.read_zones(arguments.zones, catalog))
    if arguments.subnets is not None:
        content = read_bytes(arguments.subnets)
        given = subnets.read_subnets(arguments.subnets, content, catalog)
        return subnets.within_subnets(snapshot, given, catalog)
    if _names_cluster(arguments) and (found := subnets.node_zones(snapshot)):
        notes.append(f"zones: those of the cluster's nodes ({', '.join(found)}), or say --zones")
        return subnets.within_zones(snapshot, found)
    return subnets.within_assumed_zones(snapshot, catalog, notes)


def _write_files(arguments: argparse.Namespace, plan_run: "PlanRun") -> None:
    from functions.cli.plan.inputs import write_bytes  # noqa: PLC0415

    if arguments.svg is not None:
        from functions.cli.plan.svg_plan import draw_plan  # noqa: PLC0415
        from shared.instance_types.summary import summarize  # noqa: PLC0415

        summary = summarize(plan_run.catalog)
        caption = f"Prices: {summary.region}, {summary.date}."
        write_bytes(
            arguments.svg, draw_plan(plan_run.planned.snapshot, plan_run.plan, caption).encode()
        )
    if arguments.save is not None:
        from shared.provisioning.decisions.record import compressed, decision_document  # noqa: PLC0415

        document = decision_document(
            "", plan_run.planned.snapshot, plan_run.plan, plan_run.settings
        )
        write_bytes(arguments.save, compressed(document))


def _replay(arguments: argparse.Namespace) -> int:
    from functions.cli.plan import plan_text  # noqa: PLC0415
    from functions.cli.plan.decisions import recorded_decision  # noqa: PLC0415
    from shared.planning.lower_bound import with_bound  # noqa: PLC0415

    try:
        decision = recorded_decision(arguments.decision)
    except InvalidManifestError as error:
        problem = f"{error.field}: {error.remedy}"
        raise InputError(f"{arguments.decision}: document 1: {problem}") from error
    settings = with_settings(decision.settings, arguments.settings)
    notes = overridden_policy_notes(settings, decision.settings, decision.snapshot.provisioners)
    sys.stderr.write(printable_text(f"note: {note}" for note in notes))
    plan = with_bound(decision.snapshot, decision.replay(settings))
    if settings != decision.settings:
        changed = changed_settings(settings, decision.settings)
        sys.stdout.write(plan_text.difference_text(decision.plan, plan, changed))
        return PLACED
    identical = decision.is_identical(plan)
    sys.stdout.write(plan_text.replay_text(decision.plan, plan, identical=identical))
    return PLACED if identical else DIFFERENT
