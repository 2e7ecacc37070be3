"""How far a plan may be above the lowest possible price, in words."""

from shared.model.plan import Plan


def gap(plan: Plan) -> str:
    """Return as text how far the cost may be above the lowest possible."""
    bound = plan.lower_bound_micros_per_hour
    known = bound or not plan.cost_micros_per_hour
    return gap_in_words(plan.gap_percent, proved=bool(known), close=plan.bound_is_close)


def gap_in_words(percent: float, *, proved: bool, close: bool) -> str:
    """Return as text how far a price may be above the lowest possible.

    Args:
        percent: How far it is above the proved lower bound.
        proved: Whether any lower bound is proved.
        close: Whether the bound is known to be close to the lowest possible
            (`Plan.bound_is_close`).
    """
    if not proved:
        return "no lower bound: existing nodes may have room for these pods"
    if close:
        return f"gap {percent:.2f} %"
    return f"at most {percent:.2f} % above what is proved"
