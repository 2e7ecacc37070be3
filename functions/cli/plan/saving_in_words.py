"""What a change of nodes saves, in words."""

from shared.model.dollars_and_counts import hourly
from shared.model.plan import Plan


def saving_in_words(removed_micros_per_hour: int, plan: Plan) -> str:
    """Return what a change of nodes saves as planned, and at least where that is less.

    Args:
        removed_micros_per_hour: What the nodes cost that it removes.
        plan: With the nodes that it launches; EC2 may choose any offering of each.
    """
    dearest = sum(node.highest_price_micros_per_hour for node in plan.nodes)
    saves = f"saves {hourly(removed_micros_per_hour - plan.cost_micros_per_hour)}"
    if dearest == plan.cost_micros_per_hour:
        return saves
    return f"{saves} as planned, at least {hourly(removed_micros_per_hour - dearest)}"
