"""A CreateFleet request of type instant, read and checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moto.ec2.exceptions import EC2ClientError, InvalidSubnetIdError

from infra.local.aws.ec2 import type_facts
from infra.local.aws.ec2.allocation import STRATEGIES, Candidate, Terms, pool_depth
from infra.local.aws.ec2.capacity import ON_DEMAND, SPOT, Refusal
from infra.local.aws.ec2.launching import (
    Tags,
    Template,
    find_template,
    image_refusal,
    resolve_image,
    tags_of,
    template_refusal,
)
from infra.local.aws.ec2.price_book import MICROS, PriceBook, dollars

MAX_CONFIGS: Final = 50
MAX_OVERRIDES: Final = 300
_OPTIONS: Final = {SPOT: "SpotOptions", ON_DEMAND: "OnDemandOptions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One override with the template it belongs to and the subnet it leads to."""

    template: Template
    override: Mapping[str, Any]
    subnet_id: str
    zone: str
    refusal: Refusal | None

    def described(self) -> dict[str, Any]:
        """LaunchTemplateAndOverrides of the answer; EC2 repeats what was sent."""
        return {
            "LaunchTemplateSpecification": dict(self.template.specification),
            "Overrides": dict(self.override),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """A whole request: options in the order sent, terms by capacity type."""

    options: tuple[Option, ...]
    terms: Mapping[str, Terms]
    tags: Tags


def read_request(backend: Any, parameters: Mapping[str, Any]) -> FleetRequest:
    """Read a request.

    Raises:
        EC2ClientError: what EC2 refuses as a whole: shape, strategy, unknown launch template.
    """
    configs: Sequence[Mapping[str, Any]] = parameters.get("LaunchTemplateConfigs") or ()
    if not configs:
        raise _bad("MissingParameter", "The request must contain LaunchTemplateConfigs")
    overrides = sum(len(config.get("Overrides") or ()) for config in configs)
    if len(configs) > MAX_CONFIGS or overrides > MAX_OVERRIDES:
        raise _bad(
            "InvalidParameterValue",
            f"{len(configs)} launch template configs with {overrides} overrides are more than "
            f"{MAX_CONFIGS} and {MAX_OVERRIDES}",
        )
    options: list[Option] = []
    for config in configs:
        template = find_template(backend, config.get("LaunchTemplateSpecification") or {})
        broken = template_refusal(backend, template)
        sent: Sequence[Mapping[str, Any]] = config.get("Overrides") or ({},)
        options.extend(_option(backend, template, override, broken) for override in sent)
    return FleetRequest(
        options=tuple(options),
        terms=_all_terms(parameters),
        tags=tags_of(parameters.get("TagSpecifications")),
    )


def _bad(code: str, message: str) -> EC2ClientError:
    return EC2ClientError(code, message)


def _option(
    backend: Any, template: Template, sent: Mapping[str, Any], broken: Refusal | None
) -> Option:
    if "InstanceRequirements" in sent:
        raise _bad("UnsupportedOperation", "InstanceRequirements are not emulated: list types")
    override: dict[str, Any] = dict(sent)
    override.setdefault("InstanceType", template.launch.get("InstanceType") or "m1.small")
    zone = override.get("AvailabilityZone") or (override.get("Placement") or {}).get(
        "AvailabilityZone"
    )
    subnet_id = override.get("SubnetId") or _default_subnet(backend, zone)
    if "," in subnet_id:
        raise _bad("InvalidParameterValue", "A fleet of type instant takes one subnet an override")
    refusal = broken
    try:
        zone = backend.get_subnet(subnet_id).availability_zone
    except InvalidSubnetIdError as problem:
        refusal = refusal or Refusal(code=problem.code, message=problem.message)
        zone = zone or ""
    refusal = refusal or _type_refusal(backend, template, override, zone)
    return Option(
        template=template, override=override, subnet_id=subnet_id, zone=zone, refusal=refusal
    )


def _default_subnet(backend: Any, zone: str | None) -> str:
    found: dict[str, Any] = backend.get_default_subnets()
    names = [zone] if zone else sorted(found)
    for name in names:
        if name in found:
            return str(found[name].id)
    raise _bad("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")


def _type_refusal(
    backend: Any, template: Template, override: Mapping[str, Any], zone: str
) -> Refusal | None:
    name = override["InstanceType"]
    if not type_facts.known(name):
        return Refusal(
            code="InvalidInstanceType", message=f"The following instance type is unknown: '{name}'"
        )
    if (name, zone) not in type_facts.zonal_offerings(backend.region_name):
        elsewhere = ", ".join(type_facts.zones_of(backend.region_name, name))
        return Refusal(
            code="Unsupported",
            message=(
                f"Your requested instance type ({name}) is not supported in your requested "
                f"Availability Zone ({zone}). Please retry your request by not specifying an "
                f"Availability Zone or choosing {elsewhere}."
            ),
        )
    image_id = override.get("ImageId") or template.launch.get("ImageId") or ""
    return image_refusal(backend, resolve_image(backend, image_id), name)


def _all_terms(parameters: Mapping[str, Any]) -> dict[str, Terms]:
    wanted = parameters.get("TargetCapacitySpecification") or {}
    total = int(wanted.get("TotalTargetCapacity") or 0)
    targets = {
        ON_DEMAND: int(wanted.get("OnDemandTargetCapacity") or 0),
        SPOT: int(wanted.get("SpotTargetCapacity") or 0),
    }
    asked = sum(targets.values())
    if total < 1 or asked > total:
        raise _bad(
            "InvalidTargetCapacitySpecification",
            f"TotalTargetCapacity {total} must be at least 1 and at least the {asked} of its parts",
        )
    targets[wanted.get("DefaultTargetCapacityType") or ON_DEMAND] += total - asked
    return {
        kind: _terms(kind, parameters.get(_OPTIONS[kind]) or {}, target)
        for kind, target in targets.items()
    }


def _terms(kind: str, options: Mapping[str, Any], target: int) -> Terms:
    strategy = options.get("AllocationStrategy") or "lowest-price"
    if strategy not in STRATEGIES[kind]:
        raise _bad(
            "InvalidParameterValue",
            f"{_OPTIONS[kind]}.AllocationStrategy {strategy!r} is not one of "
            f"{', '.join(STRATEGIES[kind])}",
        )
    single_type = bool(options.get("SingleInstanceType"))
    single_zone = bool(options.get("SingleAvailabilityZone"))
    min_target = int(options.get("MinTargetCapacity") or 0)
    if min_target and not (single_type or single_zone):
        raise _bad(
            "InvalidParameterCombination",
            "MinTargetCapacity needs SingleInstanceType or SingleAvailabilityZone",
        )
    return Terms(
        strategy=strategy,
        target=target,
        single_type=single_type,
        single_zone=single_zone,
        min_target=min_target,
    )


def candidates(request: FleetRequest, capacity_type: str, book: PriceBook) -> tuple[Candidate, ...]:
    """The options as candidates of one capacity type, in the order sent."""
    found = []
    for index, option in enumerate(request.options):
        name = option.override["InstanceType"]
        price = book.price(name, option.zone, capacity_type)
        priority = option.override.get("Priority")
        found.append(
            Candidate(
                index=index,
                instance_type=name,
                zone=option.zone,
                subnet_id=option.subnet_id,
                capacity_type=capacity_type,
                vcpus=type_facts.vcpus(name),
                price_micros=price,
                depth=pool_depth(name, option.zone),
                priority=math.inf if priority is None else float(priority),
                refusal=option.refusal or _spot_refusal(option, capacity_type, price),
            )
        )
    return tuple(found)


def _spot_refusal(option: Option, capacity_type: str, price_micros: int) -> Refusal | None:
    if capacity_type != SPOT:
        return None
    if SPOT not in type_facts.usage_classes(option.override["InstanceType"]):
        return Refusal(
            code="UnfulfillableCapacity",
            message="Unable to fulfill capacity due to your request configuration.",
        )
    limit = option.override.get("MaxPrice")
    if limit is not None and round(float(limit) * MICROS) < price_micros:
        return Refusal(
            code="SpotMaxPriceTooLow",
            message=(
                f"Your Spot request price of {limit} is lower than the minimum required Spot "
                f"request fulfillment price of {dollars(price_micros)}."
            ),
        )
    return None
