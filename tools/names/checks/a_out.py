exec(open("/tmp/map-A-tools/a_check.py").read().split("trees={}")[0])
hand=r"""
# BY HAND shared/scheduling/topology/counts.py: __slots__ of Place: full -> all_labels, maybe -> possible_places, partial -> is_domain, unsettled -> placeholder_keys; of DomainCounter: ghosts -> uncertain, living -> ignores_terminating
# BY HAND shared/planning/work.py: __slots__ of Work: most -> budget, of -> steps_by_group
# BY HAND shared/planning/offerings/pending_group.py: __slots__ of PendingGroup: all the renamed names
# BY HAND shared/planning/offerings/target_node.py: __slots__ of TargetNode: all the renamed names
# BY HAND shared/planning/together/costs.py: __slots__ of DomainCosts: spots -> targets, _on_spots -> _on_targets
# BY HAND shared/packing/priced_problem.py: __slots__ of _CheapestFit: _kinds -> _bin_types, _rooms -> _allocatable
# BY HAND shared/packing/bound/whole_loads.py: __slots__ of Knapsack: kind -> bin_type, room -> allocatable
# BY HAND shared/packing/search/relocate.py: __slots__ of _MutableNode: kind -> bin_type, less -> price_without, more -> price_with
# BY HAND keywords of dataclasses.replace(): shared/packing/components.py:59 and tests/property/test_packing_laws.py:301,312, tests/unit/packing/search/test_aggregate.py:111 shapes= -> node_types=; shared/packing/priced_problem.py:232 slants= -> memory_lean= (values= stays), :275 worth= -> dual_prices=; shared/packing/search/local_search.py:97 hopes= -> expected_value=; shared/planning/offerings/bundle.py:59 own= -> self_match=; shared/planning/placement/place.py:281 worth= -> comparison_price=, spot= -> target=; shared/planning/together/bundles.py:253 shunned= -> avoided_by=
# BY HAND keywords of _replace(): packing/machine_kinds.py:188, packer.py:165,207,252, search/aggregate.py:92, tests/property/test_packing_laws.py:356 planning_price= -> comparison_price=; search/aggregate.py:92 and bound/rounding_cuts.py:73 room= -> allocatable=; purchase/purchase.py:185 shapes= -> node_types=
# BY HAND strings: tests/unit/packing/bound/test_best_bound.py:74 "best_mix" -> "solve_by_simplex"; tests/unit/packing/purchase/test_launch_groups.py:45,47 "choose_kinds" -> "choose_bin_types"; tests/unit/packing/search/test_relocate.py:79 "_MOST_QUESTIONS" -> "_MOST_EVALUATIONS"; tests/unit/packing/test_packer.py:312 "plan" -> "pack_unchecked"; tests/unit/snapshot/test_gather.py:277 "...work._STANDING" -> "_EXISTING"; tests/unit/planning/together/test_place_together.py:54,58 "_SPOTS" -> "_TARGETS"; shared/scheduling/flexibility.py TypeVar("_Way") -> TypeVar("_Option"); quoted types -> 'TargetOptions', '_LaunchGroup', 'Load' if the server leaves them
# BY HAND tests/unit/scheduling/test_kept_rooms.py:10,11 imports both the module existing_nodes and (after the map) the function of that name: import the module under another name
# BY HAND NamedTuple keywords, if the server leaves them: Found (plan, name, tight), Planned (kind), MachineKind (room, shapes, planning_price), Rules (tilt, slant, balance), Load (most_worth, ended), WorkloadMix (cpu_worth, memory_worth), _Machine (room)
# BY HAND docs/map.md, pyproject.toml: paths of the renamed files
""".strip()
# "first" order: locals and parameters, then members, functions, classes
o=["# Letter A: shared/planning, shared/scheduling, shared/packing",
"# Order: 1. parameters and local variables (today's names of functions and classes), 2. members, functions, constants, classes, 3. files.",
"# A line that stands several times: each rename reaches one scope (a loop, a comprehension, a lambda); the next line is for the next scope.",
"# '# a lambda' at the end of a line: the name is a lambda's parameter, an ast.arg inside the function, not a Name.",
"#",
"# Words. planning: spot = target; room = existing (node); way, launchable = option; launchables = offerings (OfferingIndex);",
"#   kind (ConstraintKind) = topology (TopologyConstraints); signature (NodeConstraints) = node_constraints; lot = packed group; seat = place of a packed group;",
"#   slot (pseudo resource of a rule over hosts) = host limit / pseudo_requests, pseudo_capacity, pseudo_available ('slot' is the launch slot's word);",
"#   standing = existing (kube-scheduler: existing pods); own = self_match (kube-scheduler: selfMatchNum); floor = global minimum (Kubernetes' docs on skew);",
"#   free = available (glossary); daemons = daemon_requests (glossary); sold out = at limit; company = pods of DaemonSets.",
"# packing: Shape = NodeType (what can be bought: provisioner and instance type); MachineKind = BinType (node types alike to the packer); PodClass = ItemClass;",
"#   Planned = Pattern (a bin type with contents, and copies), a plan of them = patterns; Found = Solution; worth: ResourcePrices = dual_prices, worth of a thing = value;",
"#   room of a bin type = allocatable (glossary), room left = available, FreeCapacities = free_capacities; pool = offering; planning_price = comparison_price (one word with planning);",
"#   front = undominated; roomier = with_headroom; Machine (bound) = Knapsack (the pricing problem); surplus = slack; gain = reduced cost; like, known = warm start; shaken = perturbed."]
o.append("# --- 0. frees a name that local variables take below"); o.append("shared/planning/offerings/host_limits.py :: host_limits -> find_host_limits"); DEFS[:]=[x for x in DEFS if x[1]!="host_limits"]
o.append("# --- 1. parameters and local variables"); o+=lines
o.append("# --- 2. members, functions, constants, classes")
last=None
for f,d,n in DEFS:
    if f!=last: o.append(f"# {f}"); last=f
    o.append(f"{f} :: {d} -> {n}")
o.append("# Bundle.one, .shared, .turned_away: declared again in Bundle.__init__; skip these three if the rename of PendingGroup's reached them.")
o.append("# --- 3. files"); o+=[l for l in open("/tmp/map-A-tools/a_moves.txt").read().split("\n") if l]
o.append("# STORED nothing of these rooms is skipped but for this: PackingSettings (settings, in decision records), CheaperProvisioner, strings such as 'slot/<n>', 'no shape', 'limit', 'roomy', names of procedures ('deal', 'seated' ...: Packing.candidate), Plan.wider, Plan.remark, PlannedNode.fallback, Scheduling.shared are as they were.")
o+=hand.split("\n"); o+=[l for l in open("/tmp/map-A-tools/a_prose.txt").read().split("\n") if l]
open("/tmp/measure/map-A.txt","w").write("\n".join(o)+"\n")
print(len([l for l in o if "->" in l and " :: " in l and not l.startswith("#")]), len(lines), len(DEFS))
