"""Which options of docs/settings.md the released templates have as parameters, and how.

A template of CloudFormation has parameters where `cdk deploy` has `-c key=value`. Each option is
found by its effect: the app is synthesised with the option at its default and once with `trial`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# Stands for the cluster's name. It is no parameter: keys of IAM conditions have it, and a template
# can write no parameter into a key.
CLUSTER: Final = "CLUSTER-NAME"
IMAGE: Final = "image.trial/dovetail/forwarder:trial"
_ACCOUNT: Final = "000000000001"
_ARN: Final = "^[0-9A-Za-z:/_.,@+=-]*$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option.

    Attributes:
        parameter: Its name in the templates.
        context: What is set for the synthesis in which it has its effect.
        trial: The text that stands for the value in that synthesis; empty for a switch.
        default: The parameter's default; None if it must be given.
        off: The value with which nothing differs from the synthesis without the option.
        values: What it may be; empty for any value.
        pattern: What it must match, where it may be anything.
        many: Whether it is a list, separated by commas.
    """

    parameter: str
    context: Mapping[str, str]
    about: str
    trial: str = ""
    default: str | None = ""
    off: str = ""
    values: tuple[str, ...] = ()
    pattern: str = ""
    many: bool = False

    @property
    def on(self) -> str:
        """The value of a switch that makes the difference."""
        return next(value for value in self.values if value != self.off)

    @property
    def stands_always(self) -> bool:
        """Whether a value, its default or another, stands in each template."""
        return bool(self.trial and self.off and self.off == self.default)


def _switch(key: str, off: str, on: str, about: str, *, value: str = "") -> Option:
    return Option(
        parameter=_camel(key),
        context={key: value or on},
        about=about,
        default=off,
        off=off,
        values=(off, on),
    )


def _value(key: str, default: str, trial: str, about: str, values: tuple[str, ...] = ()) -> Option:
    """Return an option that always stands where its default does."""
    return Option(
        parameter=_camel(key),
        context={key: trial},
        about=about,
        trial=trial,
        default=default,
        off=default,
        pattern="" if values else "^[0-9]+$",
        values=values,
    )


def _list(key: str, trial: str, about: str, *, of_cluster: bool = False) -> Option:
    return Option(
        parameter=_camel(key),
        context={key: f"{CLUSTER}:{trial}" if of_cluster else trial},
        about=about,
        trial=trial,
        pattern=_ARN,
        many=True,
    )


def _entry(kind: str) -> Option:
    return Option(
        parameter=f"{kind.capitalize()}AccessEntry",
        context={"existing_access_entries": f"{CLUSTER}:{kind}"},
        about=f"whether the stack makes the access entry `{kind}` or another tool manages it",
        default="made",
        off="made",
        values=("made", "exists"),
    )


def _camel(key: str) -> str:
    return "".join(word.capitalize() for word in key.split("_"))


OPTIONS: Final = (
    Option(
        parameter="AlarmTopic",
        context={"alarm_topic": f"arn:aws:sns:eu-west-1:{_ACCOUNT}:trial"},
        about="ARN of an SNS topic that alarms are sent to",
        trial=f"arn:aws:sns:eu-west-1:{_ACCOUNT}:trial",
        pattern=_ARN,
    ),
    _switch("concurrency", "reserved", "shared", "whether functions reserve their concurrency"),
    _switch("tracing", "off", "on", "whether X-Ray follows an event from function to function"),
    _value(
        "log_retention_days",
        "30",
        "1827",
        "days the functions' logs are kept",
        values=("1", "3", "5", "7", "14", "30", "60", "90", "120", "150", "180", "365", "1827"),
    ),
    Option(
        parameter="MaxPricePerHour",
        context={"max_price_per_hour": f"{CLUSTER}:424242.42"},
        about="most dollars an hour that the cluster's nodes may cost together, or none",
        trial="424242.42",
        default=None,
        off="none",
        pattern=r"^(none|[0-9]{1,6}(\.[0-9]{1,2})?)$",
    ),
    Option(
        parameter="ForwarderImage",
        context={},
        about="the forwarder's image, as <registry>/dovetail/forwarder:<tag>",
        trial=IMAGE,
        default=None,
        pattern="^[a-z0-9][A-Za-z0-9._:/@-]*$",
    ),
    _list("image_owners", _ACCOUNT, "accounts, besides Amazon and this one, whose AMIs may run"),
    _switch("own_images", "tagged", "all", "which AMIs of this account may be launched"),
    _list(
        "launch_resources",
        f"arn:aws:ec2:eu-west-1:{_ACCOUNT}:subnet/subnet-00000000000000001",
        "ARNs of what launches may use without a tag of the cluster",
        of_cluster=True,
    ),
    _list(
        "image_parameters",
        f"arn:aws:ssm:eu-west-1:{_ACCOUNT}:parameter/trial",
        "ARNs of SSM parameters that name AMIs of your own",
        of_cluster=True,
    ),
    _list(
        "kms_keys",
        f"arn:aws:kms:eu-west-1:{_ACCOUNT}:key/00000000-0000-0000-0000-000000000001",
        "ARNs of customer managed keys that volumes may be encrypted with",
    ),
    _value(
        "metadata_hop_limit", "2", "57", "most hops that an answer of the metadata service takes"
    ),
    _switch("metadata_tokens", "required", "optional", "whether IMDSv2 is required"),
    _value(
        "preference_policy",
        "Weigh",
        "Ignore",
        "what becomes of what pods prefer",
        values=("Weigh", "Respect", "Ignore"),
    ),
    _switch(
        "drift", "off", "on", "whether drifted nodes of Provisioners are replaced", value=CLUSTER
    ),
    _switch("cni_role", "node", "own", "whose role the network plugin uses"),
    _switch("ssm", "off", "on", "whether operators open sessions on nodes"),
    _entry("inside"),
    _entry("launch"),
    _entry("nodes"),
    _entry("terminate"),
    Option(
        parameter="NodeRole",
        context={"node_roles": f"{CLUSTER}:TrialNodeRole"},
        about="a role of your own that nodes may have",
        trial="TrialNodeRole",
        pattern="^[A-Za-z0-9_+=,.@-]*$",
    ),
    _list(
        "migrators",
        f"arn:aws:iam::{_ACCOUNT}:role/Trial",
        "ARNs of roles and users that may run dovetail migrate",
        of_cluster=True,
    ),
)
# What no parameter can say, and why: for these deploy with the CDK.
BY_CDK_ALONE: Final[Mapping[str, str]] = {
    "batch_window": "times of the queue are computed from it",
    "removal": "a deletion policy takes no parameter",
    "subnets": "a right for each subnet is written from its id",
    "security_groups": "as subnets",
    "bundle": "the assembly has the whole bundle",
}
# Keys whose meaning a template has in another form.
OTHERWISE: Final[Mapping[str, str]] = {
    "clusters": "one stack of the cluster's template for each",
    "settings": "a parameter for each",
    "existing_access_entries": "a parameter for each entry",
    "node_roles": "NodeRole: one role",
}
# What the control plane's template has; the cluster's has all others, and what both have.
OF_CONTROL_PLANE: Final = frozenset({"AlarmTopic", "Concurrency", "LogRetentionDays", "Tracing"})
OF_BOTH: Final = frozenset({"AlarmTopic"})


def options_of(*, control_plane: bool) -> tuple[Option, ...]:
    """Return the options of one of the two templates, in their order."""
    return tuple(
        option
        for option in OPTIONS
        if (option.parameter in OF_CONTROL_PLANE) == control_plane or option.parameter in OF_BOTH
    )
