"""What the user can choose, read from cdk.json and `-c key=value`, checked before anything else."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from aws_cdk.aws_logs import RetentionDays
from msgspec.structs import fields

from infra.aws.functions import FUNCTIONS
from shared.model.nearest import write_instead
from shared.settings import IMAGE

# Keys of the CDK have a sign: `@aws-cdk/…`, `availability-zones:account=…`.
_OWN_KEY: Final = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*$")
_OTHER_KEYS: Final = frozenset({"cli-telemetry", "nag"})
_CLUSTER: Final = re.compile(r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$")
_TOPIC: Final = re.compile(r"^arn:[^:]+:sns:[^:]+:\d{12}:[^:]+$")
_ACCOUNT: Final = re.compile(r"^\d{12}$")
_SUBNET: Final = re.compile(r"^subnet-[0-9a-f]{8,17}$")
_SECURITY_GROUP: Final = re.compile(r"^sg-[0-9a-f]{8,17}$")

_KEY: Final = re.compile(r"^arn:[^:]+:kms:[a-z0-9-]+:\d{12}:key/[0-9a-zA-Z-]+$")

# What a launch uses and may be listed; the types are those of infra.aws.cluster_role_statements.
_LAUNCH_RESOURCE: Final = re.compile(
    r"^arn:[^:]+:ec2:[a-z0-9-]+:(\d{12})?:(capacity-reservation|key-pair|network-interface|"
    r"placement-group|security-group|snapshot|subnet)/[^*?/:]+$"
)

_IMAGE_PARAMETER: Final = re.compile(
    r"^arn:[^:]+:ssm:[a-z0-9-]+:\d{12}:parameter/[\w.-]+(/[\w.-]+)*$", re.ASCII
)

# Why nothing can be launched in the Regions of a partition, by how their names begin.
_OTHER_PARTITIONS: Final = {
    "cn-": "its price list is in yuan",
    "eusc-": "its price list is in euros",
    "us-gov-": "it has no price list, and the one of `aws` takes no credentials of its accounts",
    "us-iso": "its price list was never tried",
    "eu-isoe-": "its price list was never tried",
}

# Dollars with cents, in the range of shared.settings.ClusterBrakes.
_DOLLARS: Final = re.compile(r"^\d{1,6}(\.\d{1,2})?$", re.ASCII)
NO_CEILING: Final = "none"

_ROLE: Final = re.compile(r"^[\w+=,.@-]{1,64}$", re.ASCII)
_PRINCIPAL: Final = re.compile(
    r"^arn:[^:]+:iam::\d{12}:(root|(role|user)/[\w+=,.@/-]{1,576})$", re.ASCII
)

# The access entries of a cluster's stack: of its nodes, of its three roles, and of `node_roles`.
ACCESS_ENTRIES: Final = ("inside", "launch", "nodes", "own-nodes", "terminate")

# What follows a cluster's name, and what to write instead of an invalid value.
_EXISTING_ACCESS_ENTRIES: Final = ("entry", f"one of {', '.join(ACCESS_ENTRIES)}")
_LAUNCH_RESOURCES: Final = (
    "ARN",
    (
        "a subnet, security group, snapshot, key pair, network interface, placement group or "
        "capacity reservation, without wildcards"
    ),
)
_IMAGE_PARAMETERS: Final = ("ARN", "an SSM parameter that holds an AMI's id, without wildcards")
_NODE_ROLES: Final = ("role", "the name of a role, without its path")
_MIGRATORS: Final = ("ARN", "the role or user that runs dovetail migrate")

# Retentions CloudWatch Logs knows, by days.
# Source: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
# (2026-08).
RETENTIONS: Final[Mapping[int, RetentionDays]] = {
    1: RetentionDays.ONE_DAY,
    3: RetentionDays.THREE_DAYS,
    5: RetentionDays.FIVE_DAYS,
    7: RetentionDays.ONE_WEEK,
    14: RetentionDays.TWO_WEEKS,
    30: RetentionDays.ONE_MONTH,
    60: RetentionDays.TWO_MONTHS,
    90: RetentionDays.THREE_MONTHS,
    120: RetentionDays.FOUR_MONTHS,
    150: RetentionDays.FIVE_MONTHS,
    180: RetentionDays.SIX_MONTHS,
    365: RetentionDays.ONE_YEAR,
    400: RetentionDays.THIRTEEN_MONTHS,
    545: RetentionDays.EIGHTEEN_MONTHS,
    731: RetentionDays.TWO_YEARS,
    1827: RetentionDays.FIVE_YEARS,
    3653: RetentionDays.TEN_YEARS,
}


class ConfigError(ValueError):
    """A context value is wrong; the text names it and says what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The choices of one synthesis.

    Attributes:
        clusters: EKS clusters to attach, sorted.
        max_price_per_hour: (cluster, most dollars an hour that its nodes may cost together or None
            for no ceiling), one for each of `clusters`, sorted.
        bundle: `full` installs the locked dependencies for Lambda into the asset; `code` takes
            them from the environment the functions run in.
        batch_window_seconds: How long the queue collects before provision is called.
        removal: Whether ledger and bucket outlive the stack.
        log_retention_days: Retention of the functions' log groups.
        forwarder_image: The forwarder's image, where one exists; empty to build it with Docker.
        alarm_topic: ARN of the SNS topic alarms are sent to; empty for none.
        image_owners: Accounts, besides Amazon and this one, whose AMIs may be launched.
        own_images: Which AMIs of this account may be: `tagged` for the cluster, or `all`.
        launch_resources: (cluster, ARN) of subnets, security groups, snapshots and so on that the
            cluster's launches may use although they have no tag of the cluster, sorted.
        image_parameters: (cluster, ARN) of SSM parameters of the user's own that its EC2NodeClasses
            may name (those of AWS need no mention), sorted.
        metadata_tokens: Whether the instance metadata service requires tokens (IMDSv2).
        metadata_hop_limit: Most network hops that a response of the metadata service may take.
        preference_policy: How pods' preferences are treated where a Provisioner does not say.
        drift: Those of `clusters` in which drifted nodes are also replaced for Provisioners that do
            not say, sorted.
        cni_role: Whether the network plugin uses the `node` role or one of its `own`.
        ssm: Whether operators can open sessions on nodes with Systems Manager.
        kms_keys: ARNs of customer managed keys that volumes may be encrypted with, sorted.
        subnets: Private subnets of the functions that call a cluster; empty for none.
        security_groups: Of the network interfaces of these functions; given with `subnets` only.
        existing_access_entries: (cluster, one of `ACCESS_ENTRIES`) that exist already, sorted.
        node_roles: (cluster, name of a role of the user's) that instances may also have, sorted.
        migrators: (cluster, ARN of a role or user) that may change the tags of its instances for
            `dovetail migrate`, sorted; a cluster without one has no role for that.
        tracing: Whether X-Ray follows an event from function to function.
        concurrency: `reserved` gives each function a share of the account's concurrency that no
            other takes; `shared` is for accounts whose quota is too small for that.
        settings: Overrides of defaults in `shared.settings`, by field name.
    """

    clusters: tuple[str, ...] = ()
    max_price_per_hour: tuple[tuple[str, float | None], ...] = ()
    bundle: Literal["full", "code"] = "full"
    batch_window_seconds: int = 1
    removal: Literal["retain", "destroy"] = "retain"
    log_retention_days: int = 30
    forwarder_image: str = ""
    alarm_topic: str = ""
    image_owners: tuple[str, ...] = ()
    own_images: Literal["tagged", "all"] = "tagged"
    launch_resources: tuple[tuple[str, str], ...] = ()
    image_parameters: tuple[tuple[str, str], ...] = ()
    metadata_tokens: Literal["required", "optional"] = "required"
    metadata_hop_limit: int = 2
    preference_policy: Literal["Respect", "Weigh", "Ignore"] = "Weigh"
    drift: tuple[str, ...] = ()
    cni_role: Literal["node", "own"] = "node"
    ssm: bool = False
    kms_keys: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    existing_access_entries: tuple[tuple[str, str], ...] = ()
    node_roles: tuple[tuple[str, str], ...] = ()
    migrators: tuple[tuple[str, str], ...] = ()
    tracing: bool = False
    concurrency: str = "reserved"
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)


def require_partition(region: str) -> None:
    """Refuse a Region outside the partition `aws`; an empty name means unknown and passes.

    Prices, ceilings and savings are counted in US dollars. The price list of China has an endpoint
    in cn-northwest-1, that of the European Sovereign Cloud in eusc-de-east-1; GovCloud has none.
    Source: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html,
    https://docs.amazonaws.cn/en_us/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
    and the endpoints of service `pricing` in botocore 1.44 (2026-11).

    Raises:
        ConfigError: If the Region is in another partition.
    """
    for beginning, reason in _OTHER_PARTITIONS.items():
        if region.startswith(beginning):
            raise ConfigError(
                f"Region {region}: only Regions of the partition `aws` are supported, where prices "
                f"are in US dollars: {reason}"
            )


def read_config(context: Mapping[str, Any]) -> Config:
    """Return the configuration in a CDK context, of which the CDK's own keys are left alone.

    Raises:
        ConfigError: If a key is unknown or a value is wrong.
    """
    asked: set[str] = set()

    def get(key: str) -> Any:
        asked.add(key)
        return context.get(key)

    config = _read_config(get)
    for key in sorted(context):
        if key not in asked and key not in _OTHER_KEYS and _OWN_KEY.match(key):
            raise ConfigError(f"{key}: is unknown: {write_instead(key, asked)}")
    return config


def _read_config(get: Callable[[str], Any]) -> Config:
    clusters = _clusters(get("clusters"))
    subnets, security_groups = _network(get)
    return Config(
        clusters=clusters,
        max_price_per_hour=_ceilings(get("max_price_per_hour"), clusters),
        bundle=_choice(get, "bundle", "full", "code"),
        batch_window_seconds=_number(get, "batch_window", default=1, lowest=1, highest=300),
        removal=_choice(get, "removal", "retain", "destroy"),
        log_retention_days=_retention(get),
        forwarder_image=_matching(
            get("forwarder_image"), IMAGE, "forwarder_image", "<registry>/dovetail/forwarder:<tag>"
        ),
        alarm_topic=_matching(get("alarm_topic"), _TOPIC, "alarm_topic", "the ARN of an SNS topic"),
        image_owners=_owners(get("image_owners")),
        own_images=_choice(get, "own_images", "tagged", "all"),
        launch_resources=_by_cluster(
            get, "launch_resources", clusters, _LAUNCH_RESOURCE.match, *_LAUNCH_RESOURCES
        ),
        image_parameters=_by_cluster(
            get, "image_parameters", clusters, _IMAGE_PARAMETER.match, *_IMAGE_PARAMETERS
        ),
        metadata_tokens=_choice(get, "metadata_tokens", "required", "optional"),
        metadata_hop_limit=_number(
            get, "metadata_hop_limit", default=2, lowest=1, highest=64, unit="hops"
        ),
        preference_policy=_choice(get, "preference_policy", "Weigh", "Respect", "Ignore"),
        drift=_listed_clusters(get("drift"), clusters, "drift"),
        cni_role=_choice(get, "cni_role", "node", "own"),
        ssm=_choice(get, "ssm", "off", "on") == "on",
        kms_keys=_keys(get("kms_keys")),
        subnets=subnets,
        security_groups=security_groups,
        existing_access_entries=_by_cluster(
            get,
            "existing_access_entries",
            clusters,
            ACCESS_ENTRIES.__contains__,
            *_EXISTING_ACCESS_ENTRIES,
        ),
        node_roles=_by_cluster(get, "node_roles", clusters, _ROLE.match, *_NODE_ROLES),
        migrators=_by_cluster(get, "migrators", clusters, _PRINCIPAL.match, *_MIGRATORS),
        tracing=_choice(get, "tracing", "off", "on") == "on",
        concurrency=_choice(get, "concurrency", "reserved", "shared"),
        settings=_settings(get("settings")),
    )


def _words(value: Any) -> tuple[str, ...]:
    """Return the distinct words of a list or of a comma-separated text, sorted."""
    if value is None:
        return ()
    parts = value if isinstance(value, list) else str(value).split(",")
    return tuple(sorted({str(part).strip() for part in parts} - {""}))


def _clusters(value: Any) -> tuple[str, ...]:
    names = _words(value)
    stacks: dict[str, str] = {}
    for name in names:
        if not _CLUSTER.match(name):
            raise ConfigError(
                f"clusters: {name!r}: give names of EKS clusters (letters, digits, - and _, "
                "at most 100), separated by commas"
            )
        other = stacks.setdefault(name.replace("_", "-"), name)
        if other != name:
            raise ConfigError(
                f"clusters: {other!r} and {name!r} would share a stack name: deploy them apart"
            )
    return names


def _listed_clusters(value: Any, clusters: tuple[str, ...], key: str) -> tuple[str, ...]:
    """Return the clusters that a value names."""
    for name in (found := _words(value)):
        if name not in clusters:
            raise ConfigError(f"{key}: {name!r}: give names of `clusters`, separated by commas")
    return found


def _ceilings(value: Any, clusters: tuple[str, ...]) -> tuple[tuple[str, float | None], ...]:
    """Return the ceiling of each cluster; it has no default, as no number fits all clusters."""
    found: dict[str, float | None] = {}
    for word in (*_words(value), *clusters):
        cluster, _, most = word.partition(":")
        if word in clusters and word in found:
            continue
        given = most == NO_CEILING or _DOLLARS.match(most)
        if cluster not in clusters or cluster in found or not given:
            raise ConfigError(
                f"max_price_per_hour: {word!r}: give <cluster>:<dollars an hour> or "
                f"<cluster>:{NO_CEILING}, once for each cluster of `clusters`"
            )
        found[cluster] = None if most == NO_CEILING else float(most)
    return tuple(sorted(found.items()))


def _owners(value: Any) -> tuple[str, ...]:
    return tuple(
        _matching(word, _ACCOUNT, "image_owners", "12-digit account numbers")
        for word in _words(value)
    )


def _keys(value: Any) -> tuple[str, ...]:
    return tuple(
        _matching(word, _KEY, "kms_keys", "ARNs of keys (not of aliases), separated by commas")
        for word in _words(value)
    )


def _network(get: Callable[[str], Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return subnets and security groups: both or neither."""
    subnets = tuple(
        _matching(word, _SUBNET, "subnets", "ids of subnets, separated by commas")
        for word in _words(get("subnets"))
    )
    groups = tuple(
        _matching(word, _SECURITY_GROUP, "security_groups", "ids of security groups")
        for word in _words(get("security_groups"))
    )
    if bool(subnets) != bool(groups):
        missing = "security_groups" if subnets else "subnets"
        raise ConfigError(f"{missing}: nothing: give subnets and security_groups, or none of both")
    return subnets, groups


def _by_cluster(
    get: Callable[[str], Any],
    key: str,
    clusters: tuple[str, ...],
    fits: Callable[[str], object],
    form: str,
    wanted: str,
) -> tuple[tuple[str, str], ...]:
    found = []
    for word in _words(get(key)):
        cluster, _, what = word.partition(":")
        if cluster not in clusters or not fits(what):
            raise ConfigError(
                f"{key}: {word!r}: give <cluster>:<{form}>, a cluster of `clusters` and {wanted}"
            )
        found.append((cluster, what))
    return tuple(found)


def _matching(value: Any, pattern: re.Pattern[str], key: str, wanted: str) -> str:
    if value in {None, ""}:
        return ""
    if not pattern.match(str(value)):
        raise ConfigError(f"{key}: {value!r}: give {wanted}")
    return str(value)


def _choice(get: Callable[[str], Any], key: str, first: Any, *others: Any) -> Any:
    value = get(key)
    if value is None:
        return first
    if value not in (first, *others):
        raise ConfigError(f"{key}: {value!r}: give {' or '.join((first, *others))}")
    return value


def _number(
    get: Callable[[str], Any],
    key: str,
    *,
    default: int,
    lowest: int,
    highest: int,
    unit: str = "seconds",
) -> int:
    value = get(key)
    if value is None:
        return default
    text = str(value)
    if not text.isdecimal() or not lowest <= int(text) <= highest:
        raise ConfigError(f"{key}: {value!r}: give whole {unit} from {lowest} to {highest}")
    return int(text)


def _retention(get: Callable[[str], Any]) -> int:
    value = get("log_retention_days")
    if value is None:
        return 30
    if str(value) not in {str(days) for days in RETENTIONS}:
        known = ", ".join(str(days) for days in RETENTIONS)
        raise ConfigError(f"log_retention_days: {value!r}: give one of {known}")
    return int(str(value))


def _settings(value: Any) -> dict[str, str]:
    """Return overrides of settings, each known to at least one function and not a resource."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(
            f"settings: {value!r}: give an object in cdk.json, setting names to values"
        )
    changeable = {
        name
        for spec in FUNCTIONS
        for field in fields(spec.settings)
        if not field.required and (name := field.name) != "cluster_parameters"
    }
    for name in sorted(value):
        if name not in changeable:
            raise ConfigError(f"settings: {name!r} is unknown: {write_instead(name, changeable)}")
    return {str(name): str(given) for name, given in sorted(value.items())}
