"""Runtime classes: what admission adds to a pod for its class.

Source: https://kubernetes.io/docs/concepts/containers/runtime-class/#scheduling,
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/ (2026-11),
https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/runtimeclass/
admission.go, pkg/util/tolerations/tolerations.go (MergeTolerations), 2026-11-29.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.manifests.raw_json import Raw, integer, mapping, mappings, text, text_map
from shared.model.errors import NotAdmittedError
from shared.model.quantity import milli_units


def runtimes_by_name(raws: Iterable[Raw]) -> dict[str, Raw]:
    """Return RuntimeClasses by their names."""
    return {text(mapping(raw.get("metadata")).get("name")): raw for raw in raws}


def with_runtime(spec: Raw, runtimes: Mapping[str, Raw]) -> Raw:
    """Return a pod spec as its admission completes it.

    Admission adds overhead, node selector and tolerations of the runtime class not to a template,
    only to its pods when they are created. A class that does not exist adds nothing.

    Raises:
        NotAdmittedError: The pod has another overhead or node label than its class.
    """
    name = text(spec.get("runtimeClassName"))
    found = runtimes.get(name)
    if name and found is None:
        return spec
    of_class = mapping(mapping(mapping(found).get("overhead")).get("podFixed"))
    own = mapping(spec.get("overhead"))
    if own and _millis(own) != _millis(of_class):
        raise NotAdmittedError(f"overhead is not that of its RuntimeClass {name}".rstrip())
    where = mapping(mapping(found).get("scheduling"))
    completed: dict[str, Any] = {**spec}
    if of_class:
        completed["overhead"] = of_class
    if selector := text_map(where.get("nodeSelector")):
        asked = text_map(spec.get("nodeSelector"))
        for key in sorted(set(asked) & set(selector)):
            if asked[key] != selector[key]:
                wanted = f"{key}={asked[key]}, its RuntimeClass {name} {selector[key]}"
                raise NotAdmittedError(f"nodeSelector asks for {wanted}")
        completed["nodeSelector"] = {**asked, **selector}
    if tolerations := mappings(where.get("tolerations")):
        completed["tolerations"] = _merged([*mappings(spec.get("tolerations")), *tolerations])
    return completed


def _millis(amounts: Raw) -> dict[str, int | None]:
    return {name: milli_units(amount) for name, amount in amounts.items()}


def _merged(tolerations: Sequence[Raw]) -> list[Raw]:
    """Return the tolerations without those that another covers; of equal ones the first."""
    found: list[Raw] = []
    for n, toleration in enumerate(tolerations):
        later = (
            other
            for other in tolerations[n + 1 :]
            if _parts(other) != _parts(toleration) and _covers(other, toleration)
        )
        if not any(_covers(other, toleration) for other in found) and not any(later):
            found.append(toleration)
    return found


def _parts(toleration: Raw) -> tuple[str, str, str, str, int | None]:
    return (
        text(toleration.get("key")),
        text(toleration.get("operator")) or "Equal",
        text(toleration.get("value")),
        text(toleration.get("effect")),
        integer(toleration.get("tolerationSeconds")),
    )


def _covers(wide: Raw, narrow: Raw) -> bool:
    """Return whether `wide` tolerates all taints that `narrow` does."""
    key, operator, value, effect, seconds = _parts(wide)
    other_key, other_operator, other_value, other_effect, other_seconds = _parts(narrow)
    if _parts(wide) == _parts(narrow):
        return True
    if key != other_key and (key or operator != "Exists"):
        return False
    if effect not in ("", other_effect):
        return False
    shorter = seconds is not None and (other_seconds is None or other_seconds > seconds)
    if effect == "NoExecute" and shorter:
        return False
    return operator == "Exists" or (other_operator, other_value) == ("Equal", value)
