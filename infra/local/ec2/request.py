"""A CreateFleet request of type instant, read and checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from infra.local.ec2.account import Account, Option, Tags, tags_of
from infra.local.ec2.allocation import STRATEGIES, Candidate, Terms
from infra.local.ec2.pools import ON_DEMAND, SPOT
from infra.local.ec2.refusals import ApiError, Refusal, refusal

MICROS: Final = 1_000_000
MAX_CONFIGS: Final = 50
MAX_OVERRIDES: Final = 300
_OPTIONS: Final = {SPOT: "SpotOptions", ON_DEMAND: "OnDemandOptions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """A whole request: options in the order sent, terms by capacity type."""

    options: tuple[Option, ...]
    terms: Mapping[str, Terms]
    tags: Tags


def read_request(account: Account, parameters: Mapping[str, Any]) -> FleetRequest:
    configs: Sequence[Mapping[str, Any]] = parameters.get("LaunchTemplateConfigs") or ()
    if not configs:
        raise ApiError("MissingParameter", "The request must contain LaunchTemplateConfigs")
    overrides = sum(len(config.get("Overrides") or ()) for config in configs)
    if len(configs) > MAX_CONFIGS or overrides > MAX_OVERRIDES:
        raise ApiError(
            "InvalidParameterValue",
            f"{len(configs)} launch template configs with {overrides} overrides are more than "
            f"{MAX_CONFIGS} and {MAX_OVERRIDES}",
        )
    tags = tags_of(parameters.get("TagSpecifications"))
    options: list[Option] = []
    for config in configs:
        template = account.template(config.get("LaunchTemplateSpecification") or {})
        broken = account.template_refusal(template, tags)
        sent: Sequence[Mapping[str, Any]] = config.get("Overrides") or ({},)
        options.extend(account.read_option(template, override, broken) for override in sent)
    return FleetRequest(options=tuple(options), terms=_all_terms(parameters), tags=tags)


def _all_terms(parameters: Mapping[str, Any]) -> dict[str, Terms]:
    wanted = parameters.get("TargetCapacitySpecification") or {}
    total = int(wanted.get("TotalTargetCapacity") or 0)
    targets = {
        ON_DEMAND: int(wanted.get("OnDemandTargetCapacity") or 0),
        SPOT: int(wanted.get("SpotTargetCapacity") or 0),
    }
    asked = sum(targets.values())
    if total < 1 or asked > total:
        raise ApiError(
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
        raise ApiError(
            "InvalidParameterValue",
            f"{_OPTIONS[kind]}.AllocationStrategy {strategy!r} is not one of "
            f"{', '.join(STRATEGIES[kind])}",
        )
    single_type = bool(options.get("SingleInstanceType"))
    single_zone = bool(options.get("SingleAvailabilityZone"))
    min_target = int(options.get("MinTargetCapacity") or 0)
    if min_target and not (single_type or single_zone):
        raise ApiError(
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


def candidates(
    request: FleetRequest, capacity_type: str, account: Account, now: datetime
) -> tuple[Candidate, ...]:
    """Return the options as candidates of one capacity type, in the order sent."""
    found = []
    for index, option in enumerate(request.options):
        name = option.override["InstanceType"]
        facts = account.facts(name)
        price = account.price((name, option.zone, capacity_type))
        priority = option.override.get("Priority")
        found.append(
            Candidate(
                index=index,
                instance_type=name,
                zone=option.zone,
                subnet_id=option.subnet_id,
                capacity_type=capacity_type,
                vcpus=facts.vcpus if facts else 0,
                price_micros=price,
                depth=account.depth(name, option.zone),
                priority=math.inf if priority is None else float(priority),
                refusal=account.refused(option, capacity_type, now)
                or _too_low(option, capacity_type, price),
            )
        )
    return tuple(found)


def _too_low(option: Option, capacity_type: str, price_micros: int) -> Refusal | None:
    limit = option.override.get("MaxPrice")
    if capacity_type != SPOT or limit is None or round(float(limit) * MICROS) >= price_micros:
        return None
    return refusal("SpotMaxPriceTooLow", price=str(limit), minimum=dollars(price_micros))


def dollars(micros: int) -> str:
    """Return a price as the API writes it, for example `0.096000`."""
    return f"{micros // MICROS}.{micros % MICROS:06d}"
