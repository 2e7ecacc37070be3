"""What the product asks of AWS: every call each role makes, as AWS authorises it.

A call is authorised once for every resource it makes or uses.

Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-prerequisites.html (2026-08).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from infra.aws.functions import TimerStateMachine
from infra.aws.names import FORWARDED
from shared.settings import LINKED_ROLES
from tests.infra.policies.evaluation import Ask, Value
from tests.infra.templates import Template

ACCOUNT: Final = "123456789012"
REGION: Final = "eu-west-1"
_EC2: Final = f"arn:aws:ec2:{REGION}:{ACCOUNT}:"
_REGION_ASKED: Final = {"aws:RequestedRegion": REGION}
_PROVISIONER: Final = "karpenter.sh/provisioner-name"

# Which role of a cluster each function acts under.
RIGHTS: Final[Mapping[str, str]] = {
    "bind": "inside",
    "emptiness": "inside",
    "expiration": "inside",
    "interrupt": "terminate",
    "provision": "launch",
    "registration": "inside",
    "replacement": "inside",
    "sweep": "terminate",
    "termination": "terminate",
}
_WATCHES: Final = ("EmptinessTimer", "ExpirationTimer", "RegistrationTimer")
# Which function starts which state machine.
STARTS: Final[Mapping[str, Sequence[str]]] = {
    "bind": ("ExpirationTimer", "NodeTermination"),
    "emptiness": ("EmptinessTimer", "NodeTermination"),
    "expiration": ("NodeTermination",),
    "interrupt": ("NodeTermination",),
    "provision": ("ExpirationTimer", "RegistrationTimer", "Replacement"),
    "registration": ("NodeTermination",),
    "replacement": ("EmptinessTimer", "NodeTermination", "Replacement"),
    "sweep": (*_WATCHES, "NodeTermination", "Replacement"),
    "termination": ("NodeTermination",),
}
WAKING: Final = ("expiration", "interrupt", "provision", "registration", "replacement", "sweep")
INVOKES: Final[Mapping[str, Sequence[str]]] = {
    "interrupt": ("provision",),
    "provision": ("bind", "provision"),
    "registration": ("bind",),
    "sweep": ("bind", "sweep"),
}
# Those that act in no cluster.
ALONE: Final = ("heartbeat", "refresh_catalog")
# Invoked asynchronously: Lambda sends failed events to the dead-letter queue.
ASYNCHRONOUS: Final = (
    "bind",
    "emptiness",
    "heartbeat",
    "interrupt",
    "refresh_catalog",
    "sweep",
    "termination",
)
_ROWS: Final = ("ConditionCheckItem", "DeleteItem", "GetItem", "Query", "UpdateItem")


def role_of(function: str) -> str:
    """Return the ARN of a function's role."""
    return f"arn:aws:iam::{ACCOUNT}:role/Dovetail-{REGION}-{function.replace('_', '-')}"


def cluster_role(cluster: str, right: str) -> str:
    """Return the ARN of a cluster's launch or terminate role."""
    return f"arn:aws:iam::{ACCOUNT}:role/Dovetail-{cluster}-{REGION}-{right}"


def made_with(cluster: str) -> dict[str, str]:
    """Return the context of a request that makes something for a cluster."""
    return {
        "aws:RequestTag/dovetail.dev/cluster": cluster,
        f"aws:RequestTag/kubernetes.io/cluster/{cluster}": "owned",
        f"aws:RequestTag/{_PROVISIONER}": "default",
    }


def launched_with(cluster: str) -> dict[str, str]:
    """Return the context of a request that launches a machine as the product asks for it."""
    return {
        **made_with(cluster),
        "ec2:MetadataHttpPutResponseHopLimit": "2",
        "ec2:MetadataHttpTokens": "required",
    }


def tagged_for(cluster: str) -> dict[str, str]:
    """Return the context of a request about something that was made for a cluster."""
    return {
        "aws:ResourceTag/dovetail.dev/cluster": cluster,
        f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "owned",
        f"aws:ResourceTag/{_PROVISIONER}": "default",
    }


def asked_by_functions(control_plane: Template, clusters: Sequence[str]) -> Iterator[Ask]:
    """Yield what the functions ask under their own roles, and what calls them."""
    arns = _Arns(control_plane)
    for function in (*RIGHTS, *ALONE):
        role = role_of(function)
        group = arns.of("AWS::Logs::LogGroup", _camel(function)).removesuffix("*")
        log = f"{group}log-stream:2026/11/29/[$LATEST]0123456789abcdef"
        yield _ask(role, "logs:CreateLogStream", log)
        yield _ask(role, "logs:PutLogEvents", log)
        yield _ask(role, "sqs:SendMessage", arns.dead_letters)
        if function in ASYNCHRONOUS:
            yield _ask(role, "sqs:GetQueueAttributes", arns.dead_letters)
            yield _ask(role, "sqs:GetQueueUrl", arns.dead_letters)
        if function != "refresh_catalog":
            yield from _of_the_ledger(function, arns)
        if function in RIGHTS:
            yield from _of_any_cluster(function, arns, clusters)
    yield from _of_provision(arns)
    yield from _of_copies(role_of("sweep"), arns, "s3:GetObject", "s3:PutObject")
    yield from _of_refresh_catalog(arns)
    for function in (*RIGHTS, *ALONE):
        yield _ask("lambda.amazonaws.com", "sts:AssumeRole", role_of(function))


def _of_the_ledger(function: str, arns: "_Arns") -> Iterator[Ask]:
    role = role_of(function)
    parameters = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/dovetail/clusters"
    for action in _ROWS:
        yield _ask(role, f"dynamodb:{action}", arns.table)
    yield _ask(role, "ssm:GetParametersByPath", parameters)


def _of_any_cluster(function: str, arns: "_Arns", clusters: Sequence[str]) -> Iterator[Ask]:
    role = role_of(function)
    for cluster in clusters:
        parameter = f"parameter/dovetail/clusters/{cluster}"
        yield _ask(role, "ssm:GetParameter", f"arn:aws:ssm:{REGION}:{ACCOUNT}:{parameter}")
        yield _ask(role, "sts:AssumeRole", cluster_role(cluster, RIGHTS[function]))
    for machine in STARTS[function]:
        arn = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:Dovetail{machine}"
        yield _ask(role, "states:StartExecution", arn)
    if function in WAKING:
        yield _ask(role, "sqs:SendMessage", arns.wake)
    for invoked in INVOKES.get(function, ()):
        yield _ask(role, "lambda:InvokeFunction", arns.function(invoked))


def _of_provision(arns: "_Arns") -> Iterator[Ask]:
    role = role_of("provision")
    decided = "demo/2026-11-25/plan.json.gz"
    for kept in (f"decisions/{decided}", f"bases/{decided}", "launches/demo/plan/0-0.json"):
        yield _ask(role, "s3:PutObject", f"{arns.bucket}/{kept}")
        yield _ask(role, "s3:GetObject", f"{arns.bucket}/{kept}")
    yield _ask(role, "s3:GetObject", f"{arns.bucket}/catalog/{REGION}.json")
    for prefix in ("decisions/demo/a", "bases/demo/a", "launches/demo/a", f"catalog/{REGION}.json"):
        yield _ask(role, "s3:ListBucket", arns.bucket, {"s3:prefix": prefix})
    yield from _of_copies(role, arns, "s3:GetObject")
    for action in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage"):
        yield _ask(role, f"sqs:{action}", arns.wake)


def _of_copies(role: str, arns: "_Arns", *actions: str) -> Iterator[Ask]:
    for action in actions:
        yield _ask(role, action, f"{arns.bucket}/copies/demo/0123456789abcdef/pods")
    yield _ask(role, "s3:ListBucket", arns.bucket, {"s3:prefix": "copies/demo/a"})


def _of_refresh_catalog(arns: "_Arns") -> Iterator[Ask]:
    role = role_of("refresh_catalog")
    catalogue = f"{arns.bucket}/catalog/{REGION}.json"
    yield _ask(role, "s3:PutObject", catalogue)
    yield _ask(role, "s3:GetObject", catalogue)
    yield _ask(role, "s3:ListBucket", arns.bucket, {"s3:prefix": f"catalog/{REGION}.json"})
    for action in ("InstanceTypeOfferings", "InstanceTypes", "SpotPriceHistory"):
        yield _ask(role, f"ec2:Describe{action}", "*", _REGION_ASKED)
    for name, service in LINKED_ROLES.items():
        linked = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/{name}"
        yield _ask(role, "iam:GetRole", linked)
        yield _ask(role, "iam:CreateServiceLinkedRole", linked, {"iam:AWSServiceName": service})
    yield _ask(role, "pricing:GetProducts", "*", {"aws:RequestedRegion": "us-east-1"})


def asked_by_services(control_plane: Template) -> Iterator[Ask]:
    """Yield what rules, schedules and state machines ask."""
    arns = _Arns(control_plane)
    targets = {
        "Wake": "",
        "FastLane": "provision",
        "NodeEmpty": "emptiness",
        "NodeReady": "bind",
        "NodeDeleted": "termination",
        "Heartbeat": "heartbeat",
        "SpotInterruption": "interrupt",
        "ReservationInterruption": "interrupt",
        "Rebalance": "interrupt",
        "StateChange": "interrupt",
        "ScheduledChange": "interrupt",
        "EveryMinute": "sweep",
        "EveryHour": "refresh_catalog",
        "Deployed": "refresh_catalog",
    }
    for rule, function in targets.items():
        source = {"aws:SourceArn": arns.of("AWS::Events::Rule", f"Delivery{rule}")}
        service = "events.amazonaws.com"
        yield _ask(service, "sqs:SendMessage", arns.dead_letters, source)
        if function:
            yield _ask(service, "lambda:InvokeFunction", arns.function(function), source)
        else:
            for action in ("SendMessage", "GetQueueAttributes", "GetQueueUrl"):
                yield _ask(service, f"sqs:{action}", arns.wake, source)
    for timer in TimerStateMachine:
        step = timer.value
        machine = arns.of("AWS::IAM::Role", f"{_camel(step)}MachineRole")
        arn = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{timer.machine_name}"
        source = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": arn}
        yield _ask("states.amazonaws.com", "sts:AssumeRole", machine, source)
        yield _ask(machine, "lambda:InvokeFunction", arns.function(step))


def asked_to_launch(cluster: str) -> Iterator[Ask]:
    """Yield what a cluster's launch role asks: templates, fleets, what EC2 checks for both."""
    role = cluster_role(cluster, "launch")
    made, owned = made_with(cluster), tagged_for(cluster)
    yield _ask(role, "ec2:CreateFleet", f"{_EC2}instance/*", made)
    yield _ask(role, "ec2:RunInstances", f"{_EC2}instance/*", launched_with(cluster))
    snapshot = f"arn:aws:ec2:{REGION}::snapshot/snap-0a"
    own = (
        {f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "shared"},
        {"aws:ResourceTag/karpenter.sh/discovery": cluster},
    )
    in_fleet = ("capacity-reservation/cr-0a", "placement-group/close", "subnet/subnet-0a")
    in_machine = (*in_fleet, "key-pair/operators", "security-group/sg-0a")
    for action, used in (("ec2:CreateFleet", in_fleet), ("ec2:RunInstances", in_machine)):
        yield _ask(role, action, f"{_EC2}launch-template/lt-0a", owned)
        yield _ask(role, action, f"{_EC2}volume/*", made)
        for tag in own:
            for resource in used:
                yield _ask(role, action, f"{_EC2}{resource}", tag)
    yield _ask(role, "ec2:RunInstances", f"{_EC2}network-interface/*", made)
    yield _ask(role, "ec2:RunInstances", f"{_EC2}spot-instances-request/*")
    for context in (*own, {"ec2:Owner": "amazon"}):
        yield _ask(role, "ec2:RunInstances", snapshot, context)
    image = f"arn:aws:ec2:{REGION}::image/ami-0a"
    yield _ask(role, "ec2:CreateFleet", image)
    yield _ask(role, "ec2:RunInstances", image, {"ec2:Owner": "amazon"})
    for tag in own:
        yield _ask(role, "ec2:RunInstances", image, {"ec2:Owner": ACCOUNT, **tag})
    yield _ask(role, "ec2:CreateFleet", f"{_EC2}fleet/*", made)
    for kind in ("fleet", "instance", "network-interface", "spot-instances-request", "volume"):
        for call in ("CreateFleet", "RunInstances"):
            tagging = {**made, "ec2:CreateAction": call}
            yield _ask(role, "ec2:CreateTags", f"{_EC2}{kind}/x-0a", tagging)
    template = f"{_EC2}launch-template/*"
    yield _ask(role, "ec2:CreateLaunchTemplate", template, made)
    tagging = {**made, "ec2:CreateAction": "CreateLaunchTemplate"}
    yield _ask(role, "ec2:CreateTags", template, tagging)
    for service in ("ec2.amazonaws.com", "ec2.amazonaws.com.cn"):
        passed = {"iam:PassedToService": service}
        yield _ask(role, "iam:PassRole", node_role(cluster), passed)
    image_name = f"arn:aws:ssm:{REGION}::parameter/aws/service/eks/optimized-ami/1.33/image_id"
    yield _ask(role, "ssm:GetParameters", image_name)
    for what in ("Images", "Instances", "LaunchTemplates", "SecurityGroups", "Subnets"):
        yield _ask(role, f"ec2:Describe{what}", "*", _REGION_ASKED)
    yield _ask(role, "eks:DescribeCluster", cluster_arn(cluster))


def asked_to_terminate(cluster: str) -> Iterator[Ask]:
    """Yield what a cluster's terminate role asks."""
    role = cluster_role(cluster, "terminate")
    owned = tagged_for(cluster)
    yield _ask(role, "ec2:TerminateInstances", f"{_EC2}instance/i-0a", owned)
    yield _ask(role, "ec2:DeleteLaunchTemplate", f"{_EC2}launch-template/lt-0a", owned)
    for what in ("Instances", "LaunchTemplates"):
        yield _ask(role, f"ec2:Describe{what}", "*", _REGION_ASKED)
    yield _ask(role, "eks:DescribeCluster", cluster_arn(cluster))


def asked_inside(cluster: str) -> Iterator[Ask]:
    """Yield what a cluster's inside role asks."""
    role = cluster_role(cluster, "inside")
    yield _ask(role, "ec2:DescribeInstances", "*", _REGION_ASKED)
    yield _ask(role, "eks:DescribeCluster", cluster_arn(cluster))


def asked_by_forwarder(cluster: str, template: Template) -> Iterator[Ask]:
    """Yield what the forwarder of a cluster asks, and who gives it its role."""
    arns = _Arns(template)
    role = arns.of("AWS::IAM::Role", "ForwarderRole")
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/dovetail"
    # A call has entries of one kind; all kinds in one are judged by the same statement.
    for kinds in (*((kind,) for kind in FORWARDED), FORWARDED):
        said = {"events:source": (f"dovetail.{cluster}",), "events:detail-type": kinds}
        yield _ask(role, "events:PutEvents", bus, said)
    pod = {
        "aws:SourceAccount": ACCOUNT,
        "aws:RequestTag/eks-cluster-arn": cluster_arn(cluster),
        "aws:RequestTag/eks-cluster-name": cluster,
        "aws:RequestTag/kubernetes-namespace": "dovetail",
        "aws:RequestTag/kubernetes-service-account": "dovetail-forwarder",
    }
    for action in ("sts:AssumeRole", "sts:TagSession"):
        yield _ask("pods.eks.amazonaws.com", action, role, pod)
    yield _ask("ec2.amazonaws.com", "sts:AssumeRole", node_role(cluster))


def node_role(cluster: str) -> str:
    """Return the ARN of a cluster's node role."""
    return f"arn:aws:iam::{ACCOUNT}:role/DovetailNode-{cluster}-{REGION}"


def cluster_arn(cluster: str) -> str:
    """Return the ARN of an EKS cluster."""
    return f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{cluster}"


def _ask(
    principal: str, action: str, resource: str, context: Mapping[str, Value] | None = None
) -> Ask:
    # Every call of an SDK goes over TLS.
    with_transport = {"aws:SecureTransport": "true", **(context or {})}
    return Ask(principal=principal, action=action, resource=resource, context=with_transport)


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


class _Arns:
    """Finds resources of a template by the beginning of their logical id."""

    def __init__(self, template: Template) -> None:
        self._template = template
        self.table = self.of("AWS::DynamoDB::Table", "Ledger")
        self.bucket = self.of("AWS::S3::Bucket", "Archive")
        self.wake = self.of("AWS::SQS::Queue", "QueuesWake", "QueuesWakeFailures")
        self.dead_letters = self.of("AWS::SQS::Queue", "QueuesDeadLetters")

    def id(self, kind: str, beginning: str, but: str = "-") -> str:
        found = [resource.logical_id for resource in self._template.of(kind)]
        (match,) = [
            value for value in found if value.startswith(beginning) and not value.startswith(but)
        ]
        return match

    def of(self, kind: str, beginning: str, but: str = "-") -> str:
        if not self._template.of(kind):
            return ""
        reference = {"Fn::GetAtt": [self.id(kind, beginning, but), "Arn"]}
        return str(self._template.resolve(reference))

    def function(self, name: str) -> str:
        return self.of("AWS::Lambda::Function", f"{_camel(name)}Function")
