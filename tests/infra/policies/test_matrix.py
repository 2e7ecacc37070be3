"""Every right is used, every bound of every right bites, and no cluster reaches another."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from tests.infra.policies import asked
from tests.infra.policies.evaluation import Ask, applies
from tests.infra.policies.granted import Grant, Grants, widened
from tests.infra.templates import CLUSTERS, Template, listed

PAIRS = [pair for pair in product(CLUSTERS, CLUSTERS) if pair[0] != pair[1]]


@pytest.fixture(scope="module")
def grants(control_plane: Template, clusters: Mapping[str, Template]) -> Grants:
    return Grants({"": control_plane, **clusters})


@pytest.fixture(scope="module")
def asks(control_plane: Template, clusters: Mapping[str, Template]) -> tuple[Ask, ...]:
    """Everything the product asks of AWS."""
    found = [*asked.asked_by_functions(control_plane, CLUSTERS)]
    found += asked.asked_by_services(control_plane)
    for name, template in clusters.items():
        found += asked.asked_to_launch(name)
        found += asked.asked_to_terminate(name)
        found += asked.asked_inside(name)
        found += asked.asked_by_forwarder(name, template)
    return tuple(found)


def test_everything_the_product_asks_is_allowed(grants: Grants, asks: tuple[Ask, ...]) -> None:
    refused = [ask for ask in asks if not grants.allows(ask)]

    assert len(asks) > 380
    assert refused == []


def test_no_right_is_given_that_is_never_used(grants: Grants, asks: tuple[Ask, ...]) -> None:
    unused = []
    for grant in grants.all:
        if grant.statement["Effect"] != "Allow":
            continue
        mine = [ask for ask in asks if grant.principal in ("", ask.principal)]
        for part in ("Action", "Resource"):
            for entry in listed(grant.statement[part]):
                narrowed = {**grant.statement, part: entry}
                if not any(applies(narrowed, ask) for ask in mine):
                    unused.append((grant.name, entry))

    assert unused == []


def test_every_bound_of_every_statement_refuses_a_request(
    grants: Grants, asks: tuple[Ask, ...]
) -> None:
    """Each action, resource, principal and condition is the one thing that stops some ask."""
    checked = 0
    idle = []
    for index, grant in enumerate(grants.all):
        if grant.statement["Effect"] != "Allow":
            continue
        for bound, wider in widened(grant.statement):
            checked += 1
            # A role is assumed by two consents: each must refuse without the other's help.
            if not any(
                not grants.allows(near, both=False)
                and grants.allows(near, {index: wider}, both=False)
                for near in _near_misses(grant, bound, asks)
            ):
                idle.append((grant.name, bound))

    assert checked > 350
    assert idle == []


def _near_misses(grant: Grant, bound: str, asks: tuple[Ask, ...]) -> Iterator[Ask]:
    """Yield asks that the statement would allow but for one bound."""
    for ask in asks:
        if grant.principal not in ("", ask.principal) or not applies(grant.statement, ask):
            continue
        change = partial(dataclasses.replace, ask)
        match bound:
            case "Action":
                yield change(action=f"{ask.action.split(':')[0]}:DoSomethingElse")
            case "Resource":
                yield from (change(resource=value) for value in _elsewhere(ask.resource))
            case "Principal":
                yield change(principal=f"arn:aws:iam::{asked.ACCOUNT}:role/another")
                yield change(principal="another.amazonaws.com")
                # One from outside that would pass for the caller: the account alone refuses it.
                forged = {**ask.context, "aws:PrincipalArn": ask.principal}
                yield change(principal="arn:aws:iam::999999999999:role/another", context=forged)
            case _:
                # Under the wildcard a value means nothing: only its absence is refused.
                without = {k: v for k, v in ask.context.items() if k.lower() != bound.lower()}
                (given,) = [ask.context[k] for k in ask.context if k not in without] or [""]
                other = ("another",) if isinstance(given, tuple) else "another"
                yield change(context={**without, bound: other})
                yield change(context=without)
                if bound == "aws:PrincipalArn":
                    yield change(principal=f"arn:aws:iam::{asked.ACCOUNT}:role/another")


def _elsewhere(resource: str) -> Iterator[str]:
    """Yield resources of another account, another Region, another kind and another name."""
    for mine, other in (
        (asked.ACCOUNT, "999999999999"),
        (f":{asked.REGION}:", ":us-east-1:"),
    ):
        if mine in resource:
            yield resource.replace(mine, other)
    kind, separator, _ = resource.rpartition("/")
    yield f"{kind}{separator}another"
    yield f"{resource}-another"
    yield "arn:aws:s3:::another-bucket/another"


@pytest.mark.parametrize(("mine", "other"), PAIRS)
def test_a_cluster_s_launch_role_makes_nothing_for_another_cluster(
    grants: Grants, mine: str, other: str
) -> None:
    role = asked.cluster_role(mine, "launch")
    bound = [
        ask for ask in asked.asked_to_launch(other) if other in f"{ask.resource} {ask.context}"
    ]

    assert len(bound) > 30
    for ask in bound:
        assert not grants.allows(replace(ask, principal=role)), ask


@pytest.mark.parametrize(("mine", "other"), PAIRS)
def test_a_cluster_s_terminate_role_ends_nothing_of_another_cluster(
    grants: Grants, mine: str, other: str
) -> None:
    role = asked.cluster_role(mine, "terminate")
    refused = [
        ask.action
        for ask in asked.asked_to_terminate(other)
        if not grants.allows(replace(ask, principal=role))
    ]

    assert refused == ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate", "eks:DescribeCluster"]


@pytest.mark.parametrize(("mine", "other"), PAIRS)
def test_a_cluster_s_forwarder_speaks_for_no_other_cluster_and_says_nothing_else(
    grants: Grants, clusters: Mapping[str, Template], mine: str, other: str
) -> None:
    """Neither alone, nor beside an entry of its own; the role goes to the cluster's pods alone."""
    own, *_ = asked.asked_by_forwarder(mine, clusters[mine])
    foreign, *others = asked.asked_by_forwarder(other, clusters[other])
    source, kind = "events:source", "events:detail-type"

    assert grants.allows(own)
    for key, values in (
        (source, foreign.context[source]),
        (source, (*own.context[source], *foreign.context[source])),
        (kind, ("sweep",)),
        (kind, (*own.context[kind], "sweep")),
        (kind, ()),
    ):
        changed = {name: value for name, value in {**own.context, key: values}.items() if value}
        assert not grants.allows(replace(own, context=changed)), changed
    given = [ask for ask in others if ask.principal == "pods.eks.amazonaws.com"]
    assert len(given) == 2
    for ask in given:
        assert not grants.allows(replace(ask, resource=own.principal))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_launch_and_terminate_never_do_each_other_s_work(grants: Grants, cluster: str) -> None:
    launching = {ask.action for ask in asked.asked_to_launch(cluster)}
    ending = {ask.action for ask in asked.asked_to_terminate(cluster)}

    for ask in asked.asked_to_launch(cluster):
        if ask.action not in ending:
            swapped = asked.cluster_role(cluster, "terminate")
            assert not grants.allows(replace(ask, principal=swapped))
    for ask in asked.asked_to_terminate(cluster):
        if ask.action not in launching:
            swapped = asked.cluster_role(cluster, "launch")
            assert not grants.allows(replace(ask, principal=swapped))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_only_functions_assume_roles_of_one_kind_each(grants: Grants, cluster: str) -> None:
    def may(principal: str, right: str) -> bool:
        role = asked.cluster_role(cluster, right)
        return grants.allows(Ask(principal=principal, action="sts:AssumeRole", resource=role))

    for name, right in asked.RIGHTS.items():
        for kind in ("inside", "launch", "terminate"):
            assert may(asked.role_of(name), kind) == (kind == right)
    for stranger in (
        asked.role_of("refresh_catalog"),
        asked.cluster_role("demo", "launch"),
        asked.node_role(cluster),
        "lambda.amazonaws.com",
        f"arn:aws:iam::{asked.ACCOUNT}:root",
        "arn:aws:iam::999999999999:role/Dovetail-eu-west-1-provision",
    ):
        for kind in ("inside", "launch", "terminate"):
            assert not may(stranger, kind)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_inside_role_changes_nothing_in_ec2(grants: Grants, cluster: str) -> None:
    """It reads what bind and four timers read; whatever launches or ends machines is refused."""
    role = asked.cluster_role(cluster, "inside")
    own = {(ask.action, ask.resource) for ask in asked.asked_inside(cluster)}
    others = [*asked.asked_to_launch(cluster), *asked.asked_to_terminate(cluster)]

    allowed = {
        (other.action, other.resource)
        for other in others
        if grants.allows(replace(other, principal=role))
    }

    assert allowed == own


def test_no_policy_names_a_role_by_its_id(grants: Grants) -> None:
    """IAM stores a principal that is a role as its id, which a role made again does not have."""
    named = [
        entry
        for grant in grants.all
        if "Principal" in grant.statement and grant.statement["Principal"] != "*"
        for values in grant.statement["Principal"].values()
        for entry in listed(values)
    ]

    assert len(named) > 20
    assert [entry for entry in named if ":role/" in entry] == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_cluster_holds_no_right_in_ec2(grants: Grants, cluster: str) -> None:
    """Neither its forwarder nor its machines, as far as we give them anything."""
    inside = [grant for grant in grants.all if grant.owner == f"Forwarder of {cluster}"]
    nodes = [grant for grant in grants.all if grant.owner == f"Nodes of {cluster}"]

    assert [grant.statement["Action"] for grant in inside] == ["events:PutEvents"]
    assert nodes == []


def test_queues_and_bucket_refuse_what_comes_without_tls(
    grants: Grants, asks: tuple[Ask, ...]
) -> None:
    stored = [ask for ask in asks if ask.resource.startswith(("arn:aws:sqs:", "arn:aws:s3:"))]

    assert {ask.resource.split(":")[2] for ask in stored} == {"sqs", "s3"}
    for ask in stored:
        plain = {**ask.context, "aws:SecureTransport": "false"}
        assert not grants.allows(replace(ask, context=plain))
