"""Resource types that moto's CloudFormation does not know, made with moto's own backends.

Each maker gets (name, properties, account, region) and returns the physical id and the
attributes templates may ask for.
"""

import json
import types
from collections.abc import Callable
from typing import Any

from infra.local.aws.backends import backend, moto_name
from infra.local.aws.clients import clients_of, own_access

Properties = dict[str, Any]
Made = tuple[str, dict[str, str]]
Maker = Callable[[str, Properties, str, str], Made]
# Gets (physical id, account, region).
Remover = Callable[[str, str, str], None]


def _queue_policy(name: str, properties: Properties, account: str, region: str) -> Made:
    document = json.dumps(properties["PolicyDocument"])
    for url in properties["Queues"]:
        backend("sqs", account, region).set_queue_attributes(
            url.rsplit("/", 1)[-1], {"Policy": document}
        )
    return name, {"Id": name}


def _bucket_policy(name: str, properties: Properties, account: str, region: str) -> Made:

    del name
    bucket = str(properties["Bucket"])
    document = json.dumps(properties["PolicyDocument"]).encode()
    backend("s3", account, region).put_bucket_policy(bucket, document)
    return bucket, {}


def _event_invoke_config(name: str, properties: Properties, account: str, region: str) -> Made:
    config = {key: value for key, value in properties.items() if key not in _INVOKE_IDENTITY}
    for key in ("MaximumRetryAttempts", "MaximumEventAgeInSeconds"):
        if key in config:
            config[key] = int(config[key])
    function = str(properties["FunctionName"])
    backend("lambda", account, region).put_function_event_invoke_config(function, config)
    return f"{function}|{properties.get('Qualifier', '$LATEST')}|{name}", {}


_INVOKE_IDENTITY = frozenset({"FunctionName", "Qualifier"})


def _alarm(name: str, properties: Properties, account: str, region: str) -> Made:
    alarm = backend("cloudwatch", account, region).put_metric_alarm(
        name=name,
        namespace=properties.get("Namespace"),
        metric_name=properties.get("MetricName"),
        comparison_operator=properties.get("ComparisonOperator"),
        evaluation_periods=int(properties.get("EvaluationPeriods", 1)),
        period=int(properties.get("Period", 60)),
        threshold=float(properties.get("Threshold", 0)),
        statistic=properties.get("Statistic"),
        description=properties.get("AlarmDescription", ""),
        dimensions=properties.get("Dimensions") or [],
        alarm_actions=properties.get("AlarmActions") or [],
        ok_actions=properties.get("OKActions") or [],
        insufficient_data_actions=properties.get("InsufficientDataActions") or [],
        treat_missing_data=properties.get("TreatMissingData"),
    )
    return name, {"Arn": alarm.alarm_arn}


def _access_entry(name: str, properties: Properties, account: str, region: str) -> Made:
    """Made through the EKS API of this very server, which moto lacks and infra.local adds."""
    del name, account, region
    client = clients_of(own_access())("eks")
    entry = client.create_access_entry(
        clusterName=properties["ClusterName"],
        principalArn=properties["PrincipalArn"],
        kubernetesGroups=properties.get("KubernetesGroups") or [],
        type=properties.get("Type", "STANDARD"),
    )["accessEntry"]
    identity = f"{properties['PrincipalArn']}|{properties['ClusterName']}"
    return identity, {"AccessEntryArn": entry["accessEntryArn"]}


def _delete_alarm(name: str, account: str, region: str) -> None:
    backend("cloudwatch", account, region).delete_alarms([name])


def _delete_access_entry(identity: str, account: str, region: str) -> None:
    del account, region
    principal, _, cluster = identity.partition("|")
    client = clients_of(own_access())("eks")
    client.delete_access_entry(clusterName=cluster, principalArn=principal)


MAKERS: dict[str, tuple[str, Maker]] = {
    "AWS::CloudWatch::Alarm": ("AlarmName", _alarm),
    "AWS::EKS::AccessEntry": ("", _access_entry),
    "AWS::Lambda::EventInvokeConfig": ("", _event_invoke_config),
    "AWS::S3::BucketPolicy": ("", _bucket_policy),
    "AWS::SQS::QueuePolicy": ("", _queue_policy),
}
"""Resource type: the property that names it, and its maker."""

REMOVERS: dict[str, Remover] = {
    "AWS::CloudWatch::Alarm": _delete_alarm,
    "AWS::EKS::AccessEntry": _delete_access_entry,
}
"""What does not go with something else when its stack is deleted: policies do."""


def add_resource_types() -> None:
    """Teach moto's CloudFormation the types above."""
    from moto.cloudformation import parsing

    known = parsing.get_model_map()
    for resource_type, (name_property, maker) in sorted(MAKERS.items()):
        if resource_type not in known:
            _model_class(resource_type, name_property, maker)
    for cache in (parsing.get_model_list, parsing.get_model_map, parsing.get_name_type_map):
        cache.cache_clear()


def _model_class(resource_type: str, name_property: str, maker: Maker) -> type:
    """Make a CloudFormation model; moto finds it as a direct subclass of its own base."""

    def make(cls: Any, /, name: str, template: Any, account: str, region: str, **_rest: Any) -> Any:
        made = cls()
        made.physical_resource_id, made.attributes = maker(
            name, template["Properties"], account, region
        )
        return made

    def attribute(self: Any, name: str) -> str:
        return str(self.attributes[name])

    def delete(_cls: Any, /, name: str, _template: Any, account: str, region: str) -> None:
        remover = REMOVERS.get(resource_type)
        if remover is not None:
            remover(name, account, region)

    def fill(namespace: dict[str, Any]) -> None:
        namespace |= {
            "__module__": __name__,
            "cloudformation_name_type": staticmethod(lambda: name_property),
            "cloudformation_type": staticmethod(lambda: resource_type),
            "has_cfn_attr": classmethod(lambda _cls, _attribute: True),
            "get_cfn_attribute": attribute,
            "create_from_cloudformation_json": classmethod(make),
            "delete_from_cloudformation_json": classmethod(delete),
        }

    title = resource_type.replace("AWS::", "").replace("::", "")
    return types.new_class(
        title, (moto_name("core.common_models", "CloudFormationModel"),), {}, fill
    )
