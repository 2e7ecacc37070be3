"""What pods ask of each other: spreads and pod (anti-)affinity."""

from typing import Final

from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.seeded_random import Dice, Json

SPACES: Final = {
    "default": {"kubernetes.io/metadata.name": "default"},
    "shop": {"kubernetes.io/metadata.name": "shop", "kind": "team"},
    "bank": {"kubernetes.io/metadata.name": "bank", "kind": "team", "strict": "yes"},
}
TIERS: Final = ("back", "front")
_SPREADS: Final = (
    ("spread_hostname", keys.HOSTNAME),
    ("spread_zone", keys.ZONE),
    ("spread_capacity", keys.CAPACITY_TYPE),
    ("spread_arch", keys.ARCH),
    ("spread_custom", keys.RACK),
)
_TERMS: Final = (("hostname", keys.HOSTNAME), ("zone", keys.ZONE), ("custom", keys.RACK))


def _selector(dice: Dice, app: str, apps: list[str]) -> Json | None:
    """Return which pods a rule counts: mostly the workload's own."""
    if dice.luck(0.65):
        return {"matchLabels": {"app": app}}
    if dice.has("odd_selectors", 0.5):
        return dice.one(
            (
                {},
                None,
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]},
                {"matchExpressions": [{"key": "app", "operator": "In", "values": apps[:2]}]},
                {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "version", "operator": "DoesNotExist"}]},
            )
        )
    if dice.luck(0.5):
        return {"matchLabels": {"tier": dice.one(TIERS)}}
    return {"matchLabels": {"app": dice.one(apps)}}


def spreads(dice: Dice, app: str, apps: list[str]) -> list[Json]:
    """Return topology spread constraints; no key twice with the same policy."""
    found: dict[tuple[str, str], Json] = {}
    for feature, key in _SPREADS:
        if dice.has(feature, 0.5) and (not found or dice.has("several_rules", 0.6)):
            policy = "ScheduleAnyway" if dice.has("spread_soft", 0.35) else "DoNotSchedule"
            found[key, policy] = _spread(dice, key, policy, _selector(dice, app, apps))
    return list(found.values())


def _spread(dice: Dice, key: str, policy: str, selector: Json | None) -> Json:
    rule: Json = {
        "topologyKey": key,
        "maxSkew": dice.one((1, 1, 2, 3)),
        "whenUnsatisfiable": policy,
    }
    if selector is not None:
        rule["labelSelector"] = selector
        if dice.has("match_label_keys", 0.6):
            rule["matchLabelKeys"] = ["version"]
    if policy == "DoNotSchedule" and dice.has("min_domains", 0.5):
        rule["minDomains"] = dice.upto(1, 4)
    if dice.has("spread_policies", 0.6):
        rule["nodeAffinityPolicy"] = dice.one(("Honor", "Ignore"))
        rule["nodeTaintsPolicy"] = dice.one(("Honor", "Ignore"))
    return rule


def pod_affinity(dice: Dice, app: str, apps: list[str]) -> Json:
    """Return `podAffinity` and `podAntiAffinity`, required and preferred."""
    found: Json = {}
    for word, kind in (("affinity", "podAffinity"), ("anti", "podAntiAffinity")):
        for place, key in _TERMS:
            if dice.has(f"{word}_{place}", 0.4) and (not found or dice.has("several_rules", 0.6)):
                term = _term(dice, key, app, apps)
                rules = found.setdefault(kind, {})
                if dice.has("preferred", 0.4):
                    rules.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(
                        {"weight": dice.upto(1, 100), "podAffinityTerm": term}
                    )
                else:
                    rules.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(
                        term
                    )
    return found


def _term(dice: Dice, key: str, app: str, apps: list[str]) -> Json:
    term: Json = {"topologyKey": key}
    selector = _selector(dice, app, apps)
    if selector is not None:
        term["labelSelector"] = selector
        if dice.has("match_label_keys", 0.4):
            term[dice.one(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    if dice.has("namespaces", 0.5):
        way = dice.upto(0, 3)
        if way in (0, 3):
            term["namespaces"] = dice.some(sorted(SPACES), 2)
        if way in (1, 3):
            term["namespaceSelector"] = {"matchLabels": {"kind": "team"}}
        if way == 2:
            term["namespaceSelector"] = {}
    return term
