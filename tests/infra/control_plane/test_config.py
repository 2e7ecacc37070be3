import importlib
import sys
from typing import Any

import pytest
from msgspec.structs import fields

from infra.aws.config import Config, ConfigError, read_config, require_partition
from infra.aws.environment import function_environment
from infra.aws.functions import FUNCTIONS, FunctionSpec
from shared.settings import ProvisionSettings, TerminationSettings

SNAPSHOT = "arn:aws:ec2:eu-west-1::snapshot/snap-0aaaaaaa"
KEY_PAIR = "arn:aws:ec2:eu-west-1:123456789012:key-pair/operators"
PARAMETER = "arn:aws:ssm:eu-west-1:123456789012:parameter/golden/al2023"
MIGRATOR = "arn:aws:iam::123456789012:role/team/Admin"
PROD = {"clusters": "prod", "max_price_per_hour": "prod:none"}
RESOURCES = {
    "table": "t${Token[1]}",
    "bucket": "b${Token[2]}",
    "queue_url": "${Token[3]}",
    "dead_letter_url": "${Token[4]}",
    "emptiness_machine": "${Token[5]}",
    "expiration_machine": "${Token[6]}",
    "registration_machine": "${Token[7]}",
    "replacement_machine": "${Token[9]}",
    "termination_machine": "${Token[8]}",
    "bind_function": "dovetail-bind",
    "provision_function": "dovetail-provision",
    "sweep_function": "dovetail-sweep",
}


def _read(**context: Any) -> Config:
    return read_config(context)


def test_nothing_given_means_the_defaults() -> None:
    assert _read() == Config()


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("alarm_topc", "alarm_topc: is unknown: write alarm_topic"),
        ("max-price-per-hour", "max-price-per-hour: is unknown: write max_price_per_hour"),
        ("zzz", "zzz: is unknown: known are alarm_topic, "),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(key: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{told}"):
        _read(**{key: "x"})


def test_keys_of_the_cdk_are_left_alone() -> None:
    of_cdk = {"@aws-cdk/core:x": True, "availability-zones:account=1:region=r": [], "nag": "true"}
    assert _read(**of_cdk) == Config()


def test_clusters_come_as_text_or_as_a_list_and_are_sorted() -> None:
    ceilings = "prod:none,staging:none"
    text = _read(clusters="staging, prod,prod,", max_price_per_hour=ceilings)
    assert text.clusters == ("prod", "staging")
    words = _read(clusters=["staging", "prod"], max_price_per_hour=ceilings)
    assert words.clusters == ("prod", "staging")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, "prod"),
        ("", "prod"),
        ("25", "25"),
        ("prod", "prod"),
        ("prod:", "prod:"),
        ("prod:-1", "prod:-1"),
        ("prod:1e9", "prod:1e9"),
        ("prod:1000001", "prod:1000001"),
        ("prod:inf", "prod:inf"),
        ("prod:$25", "prod:$25"),
        ("staging:25", "staging:25"),
        ("prod:25,prod:30", "prod:30"),
    ],
)
def test_a_cluster_is_attached_with_a_ceiling_or_none_and_nothing_is_assumed(
    given: str | None, named: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        _read(clusters="prod", max_price_per_hour=given)
    assert str(raised.value) == (
        f"max_price_per_hour: {named!r}: give <cluster>:<dollars an hour> or <cluster>:none, once "
        "for each cluster of `clusters`"
    )


def test_ceilings_are_read_to_the_cent() -> None:
    read = _read(clusters="prod,staging", max_price_per_hour=["staging:none", "prod:12.5"])
    assert read.max_price_per_hour == (("prod", 12.5), ("staging", None))


def test_every_choice_is_read() -> None:
    config = _read(
        clusters="prod",
        max_price_per_hour="prod:25",
        bundle="code",
        batch_window="5",
        removal="destroy",
        forwarder_image="registry.example/forwarder:1",
        log_retention_days="7",
        alarm_topic="arn:aws:sns:eu-west-1:123456789012:ring",
        image_owners="210987654321",
        own_images="all",
        launch_resources=f"prod:{SNAPSHOT},prod:{KEY_PAIR}",
        image_parameters=f"prod:{PARAMETER}",
        metadata_tokens="optional",
        metadata_hop_limit="1",
        preference_policy="Respect",
        drift="prod",
        cni_role="own",
        ssm="on",
        subnets=["subnet-0bbbbbbb", "subnet-0aaaaaaa"],
        security_groups="sg-0aaaaaaa",
        existing_access_entries="prod:nodes,prod:launch",
        node_roles="prod:Mine",
        migrators=f"prod:{MIGRATOR}",
        tracing="on",
        settings={"binding_policy": "ready", "drain_deadline_seconds": 3600},
    )

    assert config == Config(
        clusters=("prod",),
        max_price_per_hour=(("prod", 25.0),),
        bundle="code",
        batch_window_seconds=5,
        removal="destroy",
        forwarder_image="registry.example/forwarder:1",
        log_retention_days=7,
        alarm_topic="arn:aws:sns:eu-west-1:123456789012:ring",
        image_owners=("210987654321",),
        own_images="all",
        launch_resources=(("prod", KEY_PAIR), ("prod", SNAPSHOT)),
        image_parameters=(("prod", PARAMETER),),
        metadata_tokens="optional",
        metadata_hop_limit=1,
        preference_policy="Respect",
        drift=("prod",),
        cni_role="own",
        ssm=True,
        subnets=("subnet-0aaaaaaa", "subnet-0bbbbbbb"),
        security_groups=("sg-0aaaaaaa",),
        existing_access_entries=(("prod", "launch"), ("prod", "nodes")),
        node_roles=(("prod", "Mine"),),
        migrators=(("prod", MIGRATOR),),
        tracing=True,
        settings={"binding_policy": "ready", "drain_deadline_seconds": "3600"},
    )


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"clusters": "prod/eu"}, "clusters: 'prod/eu': give names of EKS clusters"),
        ({"clusters": "a-b,a_b"}, "clusters: 'a-b' and 'a_b' would share a stack name"),
        ({"bundle": "zip"}, "bundle: 'zip': give full or code"),
        ({"forwarder_image": "${A}"}, "forwarder_image: '${A}': give <registry>/dovetail/forw"),
        ({"removal": "keep"}, "removal: 'keep': give retain or destroy"),
        ({"batch_window": "0"}, "batch_window: '0': give whole seconds from 1 to 300"),
        ({"batch_window": "1.5"}, "batch_window: '1.5': give whole seconds"),
        ({"log_retention_days": 31}, "log_retention_days: 31: give one of 1, 3, 5"),
        ({"alarm_topic": "ring"}, "alarm_topic: 'ring': give the ARN of an SNS topic"),
        ({"own_images": "none"}, "own_images: 'none': give tagged or all"),
        ({"image_owners": "me"}, "image_owners: 'me': give 12-digit account numbers"),
        ({"launch_resources": f"prod:{SNAPSHOT}"}, "launch_resources: 'prod:arn:aws:ec2:eu-we"),
        (
            {**PROD, "launch_resources": "prod:arn:aws:ec2:eu-west-1::snapshot/*"},
            "launch_resources: 'prod:arn:aws:ec2:eu-west-1::snapshot/*': give <cluster>:<ARN>",
        ),
        ({"image_parameters": f"prod:{PARAMETER}"}, "image_parameters: 'prod:arn:aws:ssm:eu-we"),
        (
            {**PROD, "image_parameters": "prod:/golden/al2023"},
            "image_parameters: 'prod:/golden/al2023': give <cluster>:<ARN>, a cluster of `cl",
        ),
        (
            {**PROD, "image_parameters": f"prod:{PARAMETER}/*"},
            f"image_parameters: 'prod:{PARAMETER}/*': give <cluster>:<ARN>",
        ),
        ({"cni_role": "mine"}, "cni_role: 'mine': give node or own"),
        ({"ssm": "yes"}, "ssm: 'yes': give off or on"),
        ({"metadata_tokens": "no"}, "metadata_tokens: 'no': give required or optional"),
        (
            {"preference_policy": "respect"},
            "preference_policy: 'respect': give Weigh or Respect or Ignore",
        ),
        ({"drift": "true"}, "drift: 'true': give names of `clusters`, separated by commas"),
        ({"metadata_hop_limit": "65"}, "metadata_hop_limit: '65': give whole hops from 1 to 64"),
        ({"max_price_per_hour": "prod:25"}, "max_price_per_hour: 'prod:25': give <cluster>:"),
        ({"subnets": "vpc-1", "security_groups": "sg-0aaaaaaa"}, "subnets: 'vpc-1': give ids of"),
        ({"subnets": "subnet-0aaaaaaa"}, "security_groups: nothing: give subnets and"),
        ({"security_groups": "sg-0aaaaaaa"}, "subnets: nothing: give subnets and"),
        ({"existing_access_entries": "prod:nodes"}, "existing_access_entries: 'prod:nodes': give"),
        (
            {**PROD, "existing_access_entries": "prod:node"},
            "existing_access_entries: 'prod:node': give <cluster>:<entry>",
        ),
        ({"node_roles": "prod:Mine"}, "node_roles: 'prod:Mine': give <cluster>:<role>"),
        (
            {**PROD, "node_roles": "prod:path/Mine"},
            "node_roles: 'prod:path/Mine': give <cluster>:<role>",
        ),
        ({"migrators": f"prod:{MIGRATOR}"}, "migrators: "),
        (
            {**PROD, "migrators": "prod:Admin"},
            "migrators: 'prod:Admin': give <cluster>:<ARN>, a cluster of `clusters` and the role",
        ),
        ({"tracing": "yes"}, "tracing: 'yes': give off or on"),
        ({"settings": "x"}, "settings: 'x': give an object"),
        ({"settings": {"tabel": 1}}, "settings: 'tabel' is unknown: known are "),
        ({"settings": {"table": "mine"}}, "settings: 'table' is unknown"),
    ],
)
def test_a_wrong_value_is_named_with_what_to_write(context: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        _read(**context)

    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


def test_overrides_reach_the_functions_that_know_them() -> None:
    overrides = {"drain_deadline_seconds": "60", "lease_seconds": "60"}
    provision = function_environment(ProvisionSettings, RESOURCES, overrides)
    termination = function_environment(TerminationSettings, RESOURCES, overrides)

    assert provision["DOVETAIL_LEASE_SECONDS"] == "60.0"
    assert "DOVETAIL_DRAIN_DEADLINE_SECONDS" not in provision
    assert termination["DOVETAIL_DRAIN_DEADLINE_SECONDS"] == "60.0"
    assert termination["DOVETAIL_TABLE"] == "t${Token[1]}"


@pytest.mark.parametrize("plan", FUNCTIONS, ids=lambda plan: plan.name)
def test_a_function_reads_the_settings_that_its_plan_gives_it(
    plan: FunctionSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all settings that can be chosen, though others must be valid for its own model alone."""
    chosen = {"api_timeout_seconds": "18", "lease_seconds": "60", "binding_policy": "scheduler"}
    resources = {
        **RESOURCES,
        **{name: "arn:aws:states:x" for name in RESOURCES if "machine" in name},
    }
    given = function_environment(plan.settings, resources, chosen)
    load = importlib.import_module(f"functions.{plan.name}.handler").load_runtime.__wrapped__
    module = sys.modules[load.__module__]
    monkeypatch.setattr(module, "environment", lambda: given)
    made = f"{plan.name.replace('_', ' ').title().replace(' ', '')}Runtime"
    made = made if hasattr(module, made) else "ServiceRuntime"
    monkeypatch.setattr(module, made, lambda settings, *_: settings)

    read = load()

    assert type(read) is plan.settings
    assert read.to_environment() == given


def test_a_setting_of_several_functions_is_the_same_in_all() -> None:
    defaults: dict[str, set[Any]] = {}
    for plan in FUNCTIONS:
        for field in fields(plan.settings):
            defaults.setdefault(field.name, set()).add((field.type, field.default))

    assert {name for name, found in defaults.items() if len(found) > 1} == set()


def test_a_setting_out_of_range_is_refused_at_synthesis() -> None:
    with pytest.raises(ConfigError, match=r"settings: DOVETAIL_LEASE_SECONDS: .*<= 60"):
        function_environment(ProvisionSettings, RESOURCES, {"lease_seconds": "90"})


def test_a_resource_the_stack_forgets_is_noticed() -> None:
    without = {name: value for name, value in RESOURCES.items() if name != "bind_function"}

    with pytest.raises(ConfigError, match="ProvisionSettings needs bind_function"):
        function_environment(ProvisionSettings, without, {})


def test_keys_for_volumes_are_arns_of_keys() -> None:
    arn = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    assert read_config({"kms_keys": f"{arn}, {arn}"}).kms_keys == (arn,)
    with pytest.raises(ConfigError, match="kms_keys: 'alias/mine': give ARNs of keys"):
        read_config({"kms_keys": "alias/mine"})


@pytest.mark.parametrize("region", ["", "eu-west-1", "us-east-1", "ca-central-1"])
def test_regions_of_the_partition_aws_pass(region: str) -> None:
    require_partition(region)


@pytest.mark.parametrize(
    ("region", "reason"),
    [
        ("cn-north-1", "in yuan"),
        ("cn-northwest-1", "in yuan"),
        ("eusc-de-east-1", "in euros"),
        ("us-gov-west-1", "it has no price list"),
        ("us-iso-east-1", "never tried"),
        ("us-isob-east-1", "never tried"),
        ("eu-isoe-west-1", "never tried"),
    ],
)
def test_regions_of_other_partitions_are_refused(region: str, reason: str) -> None:
    text = f"Region {region}: only Regions of the partition `aws` are supported, .*{reason}"
    with pytest.raises(ConfigError, match=text):
        require_partition(region)
