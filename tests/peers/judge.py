"""Judges an answer by the problem alone: nothing of either planner is used.

Rules between pods are judged by what has become of all pods, since Karpenter does not say in which
order it means them to be bound: what is found here is broken in every order.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.resources import PODS, Resources
from tests.peers.answers import Answer, Machine
from tests.peers.problems import Problem, Raw

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_DOMAINS: Final = (keys.ZONE, keys.HOSTNAME)


def judge(problem: Problem, answer: Answer) -> Counter[str]:
    """Return how often what is broken; empty if nothing is."""
    found: Counter[str] = Counter()
    templates = {pod: entry.template for entry in problem.workloads for pod in entry.pods}
    placed = Counter(pod for machine in answer.machines for pod in machine.pods)
    placed.update(answer.left_out)
    found["pods placed other than once"] = sum(placed[pod] != 1 for pod in templates)
    found["pods that the problem does not have"] = len(placed.keys() - templates.keys())
    types = {entry.name: entry for entry in problem.instance_types}
    for machine in answer.machines:
        found.update(_wrong_machine(problem, machine, types, templates))
    found.update(_broken_rules(answer, templates))
    return Counter({name: count for name, count in found.items() if count})


def kept_preferences(problem: Problem, answer: Answer) -> tuple[int, int]:
    """Return the preferred terms of all pods that are kept, and how many there are.

    A term for a zone is kept if every option of the machine is in it. ScheduleAnyway counts as
    kept if its domain has at most `maxSkew` more pods than the emptiest.
    """
    templates = {pod: entry.template for entry in problem.workloads for pod in entry.pods}
    pods = _Pods(answer, templates)
    kept = total = 0
    for stood in pods.all:
        for satisfied in _preferences(stood, pods):
            total += 1
            kept += satisfied
    return kept, total


# -- machines ----------------------------------------------------------------------------------


def _wrong_machine(
    problem: Problem,
    machine: Machine,
    types: Mapping[str, InstanceType],
    templates: Mapping[str, Raw],
) -> Iterator[str]:
    offered = {
        (instance_type.name, offering.zone, offering.capacity_type): offering.price_micros_per_hour
        for instance_type in (
            types[name]
            for name in {option.instance_type for option in machine.options}
            if name in types
        )
        for offering in instance_type.offerings
    }
    pods = [templates[pod] for pod in machine.pods if pod in templates]
    asked = Resources.total(_requests(pod) for pod in pods)
    for number, option in enumerate(machine.options):
        key = (option.instance_type, option.zone, option.capacity_type)
        if key not in offered:
            yield "options that the catalogue does not have"
            continue
        if not number and offered[key] != machine.price_micros_per_hour:
            yield "prices that are not of the catalogue"
        instance_type = types[option.instance_type]
        room = instance_type.allocatable
        if any(amount > room[name] for name, amount in asked.items):
            yield "options too small for their pods"
        labels = {
            **instance_type.labels,
            keys.ZONE: option.zone,
            keys.CAPACITY_TYPE: option.capacity_type.value,
        }
        if not all(accepts(need, labels) for need in problem.requirements):
            yield "options that the pool does not allow"
        if not all(selected(pod, labels) for pod in pods):
            yield "options that a pod does not select"


def _requests(template: Raw) -> Resources:
    """Return the sum over containers, and the pod itself."""
    amounts = [entry["resources"]["requests"] for entry in template["spec"]["containers"]]
    return Resources.total((*map(Resources.parse, amounts), Resources(((PODS, 1),))))


def accepts(need: Raw, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(need["key"]), need.get("values", [])
    match need["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise AssertionError(f"unknown operator {need['operator']}")


def selected(template: Raw, labels: Mapping[str, str]) -> bool:
    wanted: Mapping[str, str] = template["spec"].get("nodeSelector", {})
    return all(labels.get(key) == value for key, value in wanted.items())


# -- rules between pods ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stood:
    """A pod on a machine; its zone is empty if it is not known before the launch."""

    template: Raw
    machine: int
    zone: str

    def domain(self, key: str) -> str | int:
        assert key in _DOMAINS, "only zones and hosts are understood"
        return self.zone if key == keys.ZONE else self.machine

    @property
    def spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.template["spec"]
        return found

    def terms(self, kind: str, strength: str) -> list[Any]:
        found: list[Any] = self.spec.get("affinity", {}).get(kind, {}).get(strength, [])
        return found


class _Pods:
    """All pods that have a place, and counts of those that selectors match."""

    def __init__(self, answer: Answer, templates: Mapping[str, Raw]) -> None:
        self.all = [
            _Stood(templates[pod], number, machine.zone)
            for number, machine in enumerate(answer.machines)
            for pod in machine.pods
            if pod in templates
        ]
        self.domains: dict[str, set[str | int]] = {
            keys.ZONE: {machine.zone for machine in answer.machines},
            keys.HOSTNAME: set(range(len(answer.machines))),
        }
        self._counts: dict[tuple[object, str], Counter[str | int]] = {}
        self._all_spread: dict[tuple[object, str], bool] = {}

    def counts(self, selector: Raw, key: str) -> Counter[str | int]:
        """Return how many pods that the selector matches are in each domain."""
        known = (_frozen(selector), key)
        if known not in self._counts:
            self._counts[known] = Counter(
                pod.domain(key) for pod in self.all if _matches(selector, pod.template)
            )
        return self._counts[known]

    def all_spread(self, selector: Raw, key: str) -> bool:
        """Return whether every pod that the selector matches is under such a rule itself.

        Others may have come later, and made a skew that no rule forbids.
        """
        known = (_frozen(selector), key)
        if known not in self._all_spread:
            self._all_spread[known] = all(
                any(
                    rule["topologyKey"] == key and rule["labelSelector"] == selector
                    for rule in pod.spec.get("topologySpreadConstraints", ())
                )
                for pod in self.all
                if _matches(selector, pod.template)
            )
        return self._all_spread[known]


def _frozen(selector: Raw) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(selector["matchLabels"].items()))


def _matches(selector: Raw, template: Raw) -> bool:
    labels: Mapping[str, str] = template["metadata"]["labels"]
    return all(labels.get(key) == value for key, value in selector["matchLabels"].items())


def _broken_rules(answer: Answer, templates: Mapping[str, Raw]) -> Counter[str]:
    pods = _Pods(answer, templates)
    found: Counter[str] = Counter()
    affine: dict[tuple[tuple[tuple[str, str], ...], str], list[_Stood]] = defaultdict(list)
    for pod in pods.all:
        for rule in pod.spec.get("topologySpreadConstraints", ()):
            if rule["whenUnsatisfiable"] == "DoNotSchedule":
                found[_broken_spread(rule, pod, pods)] += 1
        for term in pod.terms("podAntiAffinity", _REQUIRED):
            found[_broken_distance(term, pod, pods)] += 1
        for term in pod.terms("podAffinity", _REQUIRED):
            affine[_frozen(term["labelSelector"]), term["topologyKey"]].append(pod)
            if pod.domain(term["topologyKey"]) == "":
                found["pods with a rule over zones, their zone not known"] += 1
    for (selector, key), group in affine.items():
        asked: Raw = {"matchLabels": dict(selector)}
        # The first of a group goes anywhere if it is its own like; all others go to it.
        seeds = [pod for pod in pods.all if _matches(asked, pod.template) and pod not in group]
        domains = {pod.domain(key) for pod in group}
        if not seeds and len(domains) > 1:
            found["groups that want one domain and are in several"] += 1
    del found[""]
    return found


def _broken_spread(rule: Raw, pod: _Stood, pods: _Pods) -> str:
    """Judge rules whose selector matches the pod itself: the final skew is at most `maxSkew`."""
    key, selector = rule["topologyKey"], rule["labelSelector"]
    if pod.domain(key) == "":
        return "pods with a rule over zones, their zone not known"
    if not _matches(selector, pod.template) or not pods.all_spread(selector, key):
        return ""
    counts = pods.counts(selector, key)
    if counts[""]:
        return "pods with a rule over zones, their zone not known"
    domains = pods.domains[key] - {""}
    skew = counts[pod.domain(key)] - min(counts[domain] for domain in domains)
    return "pods beyond the allowed skew" if skew > rule["maxSkew"] else ""


def _broken_distance(term: Raw, pod: _Stood, pods: _Pods) -> str:
    key, selector = term["topologyKey"], term["labelSelector"]
    if pod.domain(key) == "":
        return "pods with a rule over zones, their zone not known"
    others = pods.counts(selector, key)[pod.domain(key)] - _matches(selector, pod.template)
    return "pods beside one that they must not be with" if others else ""


# -- preferences -------------------------------------------------------------------------------


def _preferences(pod: _Stood, pods: _Pods) -> Iterator[bool]:
    for entry in pod.terms("nodeAffinity", _PREFERRED):
        labels = {keys.ZONE: pod.zone}
        yield all(accepts(need, labels) for need in entry["preference"]["matchExpressions"])
    for kind, wanted in (("podAffinity", True), ("podAntiAffinity", False)):
        for entry in pod.terms(kind, _PREFERRED):
            term = entry["podAffinityTerm"]
            key, selector = term["topologyKey"], term["labelSelector"]
            others = pods.counts(selector, key)[pod.domain(key)] - _matches(selector, pod.template)
            yield pod.domain(key) != "" and bool(others) == wanted
    for rule in pod.spec.get("topologySpreadConstraints", ()):
        if rule["whenUnsatisfiable"] == "ScheduleAnyway":
            key = rule["topologyKey"]
            counts = pods.counts(rule["labelSelector"], key)
            least = min(counts[domain] for domain in pods.domains[key] - {""} or {""})
            yield pod.domain(key) != "" and counts[pod.domain(key)] - least <= rule["maxSkew"]
