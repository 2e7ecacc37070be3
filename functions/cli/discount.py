"""A discount on on-demand prices, as of Savings Plans or a private pricing agreement."""

import argparse
from decimal import Decimal, InvalidOperation

from shared.instance_types.catalog import Catalog
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.values import replace


def read_discount(text: str) -> Decimal:
    """Return what is paid of the list price.

    Raises:
        argparse.ArgumentTypeError: If it is no number above 0 and up to 1.
    """
    try:
        paid = Decimal(text)
    except InvalidOperation:
        paid = Decimal(0)
    if not (paid.is_finite() and 0 < paid <= 1):
        raise argparse.ArgumentTypeError(
            f"{text}: write what is paid of the list price, such as 0.72"
        )
    return paid


def with_discount(catalog: Catalog, paid: Decimal) -> Catalog:
    """Return the catalogue with a part of its on-demand prices; spot prices stay."""

    def discounted(instance_type: InstanceType) -> InstanceType:
        return replace(
            instance_type,
            offerings=tuple(
                replace(offering, price_micros_per_hour=int(offering.price_micros_per_hour * paid))
                if offering.capacity_type == CapacityType.ON_DEMAND
                else offering
                for offering in instance_type.offerings
            ),
        )

    return replace(catalog, instance_types=tuple(map(discounted, catalog.instance_types)))
