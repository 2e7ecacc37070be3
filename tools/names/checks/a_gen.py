import ast,collections,re,sys
from pathlib import Path
root=Path("/work/main"); S="shared/"
# ---- automatic: parameters and local variables.  (file regex, qualname regex, old, new)
P="planning/"; K="packing/"; C="scheduling/"
AUTO=[]
def a(f,q,*pairs):
    for p in pairs:
        o,n=p.split(">"); AUTO.append((re.compile(f),re.compile(q),o,n))
# exceptions first
a(r"planning/together/place_together",r"_cheapest$","ways>solutions","way>solution","targets>candidates","target>wanted","spots>targets","spot>target","levels>minimums_to_try","floors>minimums")
a(r"planning/together/place_together",r".*","target>wanted")
a(r"planning/merge_launch_groups",r"merge_launch_groups$","target>into","lists>groups")
a(r"planning/merge_launch_groups",r".*","options>group","one>group","lists>groups")
a(r"planning/explanation",r"_choices$","way>offering","one>pod_class")
a(r"planning/explanation",r"explanation$","said>shown","over>not_on_nodes")
a(r"planning/explanation",r"_refusal$","asked>scheduling")
a(r"planning/explanation",r".*","room>existing")
a(r"planning/offerings/offering_table",r"OfferingTable.__init__$","way>offering")
a(r"planning/offerings/unknown_names",r".*","way>offering")
a(r"planning/offerings/offering_table",r"OfferingTable.mask_of$","launchables>options")
a(r"planning/offerings/offering_table",r"OfferingTable.holds$","room>available")
a(r"planning/offerings/offering_table",r"OfferingTable._rank$","kind>capacity_type")
a(r"planning/offerings/offering_table",r"OfferingTable.variant$","one>provisioner_offering","machine>type_labels")
a(r"planning/offerings/offering_table",r"OfferingTable._made_shapes$","ways>options_by_node_type","rooms>allocatable")
a(r"planning/offerings/offering_table",r"OfferingTable\.(shapes|_made_shapes)$","slots>pseudo_capacity")
a(r"planning/offerings/offering_table",r"OfferingTable.where$","about>name")
a(r"planning/offerings/offering_index",r"OfferingIndex.shapes$","slots>pseudo_capacity")
a(r"planning/offerings/offering_index",r"OfferingIndex.__init__$","rooms>existing_nodes","sold_out>at_limit")
a(r"planning/offerings/offering_index",r".*","room>existing")
a(r"planning/offerings/special_types",r"SpecialTypes.__init__$","kind>group")
a(r"planning/offerings/pending_group",r"PendingGroup._constraints$","kind>topology")
a(r"planning/offerings/pending_group",r"PendingGroup.__init__$","wanted>as_rules")
a(r"planning/offerings/picks",r"Picks.want$","room>complete","told>deciding")
a(r"planning/offerings/picks",r"Picks.__init__$","telling>deciding_keys")
a(r"planning/offerings/target_node",r"TargetNode.take$","group>target_options")
a(r"planning/offerings/target_node",r"group_of$","settled>decided")
a(r"planning/packing_problem",r"(_fits)$","room>allocatable")
a(r"planning/packing_problem",r".*","ways>options_by_node_type","sold_by>by_provisioner","away>limited","by_host>index_by_host")
a(r"planning/solver",r"_pack_batch$","ways>options_by_node_type")
a(r"planning/solver",r"_turned_away$","sellers>names")
a(r"planning/placement/place_packed",r".*","ways>options_by_node_type")
a(r"planning/placement/place_packed",r"_open\.launchables$","shape>node_type","pool>number")
a(r"planning/placement/place_packed",r"Seats.find$","seats>many")
a(r"planning/placement/place_packed",r"place_packed$","seat>group_places")
a(r"planning/placement/place\.",r"_extend$","sellers>names","sold_out>at_limit","steps>purchases","step>purchase")
a(r"planning/placement/place\.",r".*","company>daemonset_profiles","settled>decided","place_there>trial")
a(r"planning/placement/flexible",r"keep_flexible$","narrow>inflexible")
a(r"planning/preferences/kept",r"KeptCounter._is_kept$","kind>about","index>position")
a(r"planning/preferences/kept",r"KeptCounter._counted$","one>pod_class")
a(r"planning/preferences/weighing",r"Solve.__call__$","weighed>as_rules")
a(r"planning/preferences/weighing",r".*","plain>baseline","wishes>weighed_preferences","wish>weighed_preference","worth>price")
a(r"planning/reasons",r"Explainer.why$","sold_out>no_capacity","room>allocatable")
a(r"planning/reasons",r".*","on_sale>available_offers","sold>advertised","told>named","room>allocatable","standing>label_sets","one>daemon_set")
a(r"planning/together/bundles",r"_price_of_one$","room>available")
a(r"planning/together/bundles",r".*","dealt>assigned")
a(r"planning/together/costs",r"_on_new$","ways>choices")
a(r"planning/together/costs",r"_may_share_host$","place>number","whole>all_placed")
a(r"planning/together/costs",r".*","settled>decided","whole>all_placed")
a(r"planning/together/batch",r".*","place>position","whole>all_placed","looking>counters")
a(r"planning/together/place_together",r"_targets$","place>position")
a(r"planning/offerings/domain_assignment",r".*","dealt>assigned","asked>pod_groups_left","slot>host_limit","looks>steps")
a(r"planning/packing_problem",r"_open_to$","looks>steps")
a(r"planning/offerings/domain_assignment",r"DomainAssigner._assign$","clinging>reused")
a(r"planning/late_nodes",r"without_overdue$","limit>longest_wait")
a(r"planning/initial_state",r"_table$","sellers>provisioner_picks","looks>checks_before","telling>deciding_keys","cut>without_picks","brought>picks_by_group")
a(r"planning/initial_state",r"_in_turn$","turn>round_number","turns>ranked")
a(r"planning/initial_state",r"initial_state$","weighed>as_rules","cut>without_picks","brought>picks_by_group","aside>others_placed","standing>existing_pods")
a(r"planning/initial_state",r"_hosts$","standing>label_sets")
a(r"planning/initial_state",r".*","room>existing_node","standing>existing_pods","book>topology_rules","maybe>possible","asked>scheduling_of")
a(r"planning/lower_bound",r"_bound$","rooms>existing_mask","slots>host_limits","taken>pseudo_taken","of_new_node>pseudo_of_new_node","shapes>node_types","shape>node_type","sold>first_names","on_sale>kept","signatures>numbers","room>existing")
a(r"planning/decide",r"decide$","plain>baseline","dear>set_aside","weighed>chosen","again>priority_work")
a(r"planning/decide",r"_solved$","weighed>as_rules","again>priority_work","together>all_at_once","ranked>by_priority")
a(r"planning/decide",r"_to_plan$","weighed>chosen","apart>not_asked")
a(r"planning/decide",r"_planned$","known>known_options","ways>options")
a(r"planning/work",r"Work.__init__$","most>budget")
a(r"planning/work",r"estimates$","standing>existing")
a(r"planning/state",r"PlanState._of_one_company$","first>of_first")
a(r"planning/state",r"PlanState.with_company_of$","way>other")
a(r"planning/cheaper",r"cheaper_provisioner$","mine>replaced")
a(r"planning/setting_aside",r"cheapest$","taken>steps_by_namespace")
a(r"planning/packing_problem",r"assemble$","signatures>numbers","sold_by>by_provisioner","signature>node_constraints")
a(r"planning/offerings/bundle\.",r"_kind$","kinds>topologies")
# general planning
a(r"planning/",r".*","spots>targets","spot>target","ways>options","way>option","launchable>option","launchables>offerings",
  "rooms>existing_nodes","room>existing","kind>topology","signatures>node_constraints_list","signature>node_constraints","over>topology_keys","slots>host_limits","slot>host_limit",
  "lots>packed_groups","lot>packed_group","seats>places","seat>place","sellers>provisioner_picks","seller>entry","shapes>node_types","shape>node_type",
  "other_pod_group>pod_group","floors>minimums","floor>minimum","book>topology_rules","standing>existing","weighed>as_rules","group>target_options","worth>comparison_price")
# scheduling
a(r"scheduling/existing_nodes",r"rooms$","standing>existing_pods","room>existing","kept>reused","made>cached","known>cached_nodes","coming>nominated_pods","alone>is_reusable")
a(r"scheduling/existing_nodes",r"_keep$","kept>cached")
a(r"scheduling/existing_nodes",r"_kept_of$","kept>cached")
a(r"scheduling/existing_nodes",r"_room_of_node$","standing>existing_pods")
a(r"scheduling/existing_nodes",r".*","standing>existing_pods","room>existing")
a(r"scheduling/flexibility",r".*","ways>options","way>option")
a(r"scheduling/pod_classes",r"group$","one>first_pod")
a(r"scheduling/provided_daemonsets",r"_(faults|machines|middle)$","machines>configured_types","machine>configured_type","middles>medians")
a(r"scheduling/provided_daemonsets",r"_machines$","machine>configured")
a(r"scheduling/provided_daemonsets",r"_too_large$","middle>median")
a(r"scheduling/provided_daemonsets|scheduling/daemon_overhead",r".*","one>daemon_set")
a(r"scheduling/provisioner_offerings",r"offers$","machines>configured_types","machine>configured_type","told>deciding_picks","asked>deciding_keys")
a(r"scheduling/provisioner_offerings",r"_machines$","machine>configured_type","to_be_had>available","out>unavailable_places")
a(r"scheduling/provisioner_offerings",r"address_warnings$","told>warning")
a(r"scheduling/provisioner_offerings",r"_allowed_places$","how>capacity_type")
a(r"scheduling/topology/compile",r"TopologyRules.__init__$","standing>existing_hosts")
a(r"scheduling/topology/compile",r"TopologyRules.kind$","over>rule_keys","preference_kinds>kept_preferences")
a(r"scheduling/topology/compile",r".*","standing>existing")
a(r"scheduling/topology/constraints",r"(accepts|obstacles)$","kind>topology")
a(r"scheduling/topology/constraints",r".*","floor>minimum","there>count")
a(r"scheduling/topology/counts",r"TopologyCounts.keys$","over>rule_keys")
a(r"scheduling/topology/counts",r"Place.__init__$","partial>is_domain","unsettled>placeholder_keys","maybe>possible_places")
a(r"scheduling/topology/counts",r"Place.become$","full>all_labels")
a(r"scheduling/topology/counts",r"(DomainCounter.__init__|_Counters.of|TopologyCounts.counted)$","living>ignores_terminating")
a(r"scheduling/topology/counts",r"expect$","sure>certain")
a(r"scheduling/topology/daemonset",r".*","book>topology_rules")
a(r"scheduling/node_constraints",r".*","signature>node_constraints")
a(r"scheduling/recent",r"Recent.get$","question>key","answer>compute")
# packing: exceptions
a(r"packing/best_bound",r".*","plain>bin_types","worth>dual_prices","rooms>free_capacities","free>capacities","question>bound_problem","questions>variants","asked>bound_problems","in_parts>fractional")
a(r"packing/bound/free_capacity",r"(beyond_rooms)$","room_worth>value_of_capacity","free>own","rooms>free_capacities","room>free")
a(r"packing/bound/free_capacity",r"_beyond$","worth>value","free>free_capacities","room_worth>value_of_capacity","room>free")
a(r"packing/bound/free_capacity",r"free_rooms$","room>amounts_left")
a(r"packing/bound/free_capacity",r"_fitting$","room>available")
a(r"packing/bound/free_capacity",r".*","rooms>free_capacities","room>free")
a(r"packing/bound/linear_program",r"solve$","worth>dual_prices","room>of_bin_type")
a(r"packing/bound/linear_program",r".*","rooms>allocatable","room>amounts","ways>supplies","known>warm_start","first>warm_columns")
a(r"packing/bound/listed_loads",r".*","machines>knapsacks","machine>knapsack")
a(r"packing/bound/patterns",r"_worth_of_room$","ways>weightings","room_worth>value_of_capacity")
a(r"packing/bound/patterns",r"_worth_of_room\..*","way>weighting","room>free","worths>values_in_all")
a(r"packing/bound/patterns",r"_alone$","way>choice")
a(r"packing/bound/patterns",r"pattern_bound$","worth_of_room>value_of_capacity")
a(r"packing/bound/patterns",r".*","machines>knapsacks","machine>knapsack","rooms>free_capacities","room>free","worth>value")
a(r"packing/bound/per_kind",r"tighter_bound$","rooms>free_capacities","room>free")
a(r"packing/bound/per_kind",r"tighter_bound\.room_worth$","room>free")
a(r"packing/bound/per_kind",r"_clusters$","ways>levels_of_detail")
a(r"packing/bound/per_kind",r"kinds_that_fit$","room>allocatable")
a(r"packing/bound/per_kind",r"_kind_prices$","room>scaled_allocatable","worth>value")
a(r"packing/bound/per_kind",r"_scaled$","worth>total")
a(r"packing/bound/per_kind",r".*","room>allocatable","worth>value")
a(r"packing/bound/resource_prices",r"ResourcePrices.of_class$","worth>value")
a(r"packing/bound/resource_prices",r"lower_bound\.room_worth$","room>free")
a(r"packing/bound/resource_prices",r"(lower_bound)$","rooms>free_capacities","worth>dual_prices")
a(r"packing/bound/resource_prices",r"_most_worth$","worth>dual_prices","value>most")
a(r"packing/bound/resource_prices",r".*","rooms>allocatable","room>amounts","like>warm_start","known>known_columns")
a(r"packing/bound/rounding_cuts",r".*","rooms>allocatable","room>of_bin_type")
a(r"packing/bound/simplex",r"best_mix$","room>capacity","most>upper_bounds","gains>reduced_costs")
a(r"packing/bound/simplex",r"_worths$","worth>values")
a(r"packing/bound/pattern_basis",r"PatternBasis.enter$","gain>reduced_cost")
a(r"packing/bound/whole_loads",r"Machine.reprice$","left_over>slack","worths>values_in_order")
a(r"packing/bound/whole_loads",r"_Search._run$","hope>upper_bound")
a(r"packing/bound/whole_loads",r".*","worth>value","machine>knapsack","above>threshold")
a(r"packing/checker",r"_over_limits$","ways>used_types","shape>node_type")
a(r"packing/checker",r".*","shapes>node_types","shape>node_type","pool>offering_index")
a(r"packing/components",r"_component$","rooms>own_bins","shapes>node_types","there>bins_mask","part>own_problem")
a(r"packing/components",r"joined$","pool>offering_index")
a(r"packing/exact",r"_best_part$","ways>choices")
a(r"packing/free_nodes",r"useful_bins$","room>amounts_left")
a(r"packing/free_nodes",r"place_on_bins$","room>available")
a(r"packing/machine_kinds",r"_diversified$","spot>is_spot","pools>prices_by_bin_type","planned>diversified")
a(r"packing/machine_kinds",r"(allowed_shapes|find_kinds)$","rooms>amounts","whole>cap_all")
a(r"packing/machine_kinds",r"_serves$","other_kind>bin_type")
a(r"packing/machine_kinds",r"_pools_of$","pool>offering")
a(r"packing/machine_kinds",r"find_kinds$","rough>bin_types")
a(r"packing/machine_kinds",r".*","room>allocatable")
a(r"packing/usable_capacity",r".*","rooms>amounts","room>available","whole>cap_all")
a(r"packing/packer",r"pack$","rooms>amounts","free>is_freer","narrower>restricted")
a(r"packing/packer",r"plan$","rooms>free_capacities","plain>by_true_price","tight>lower_bound","worth>dual_prices","asked>counts_that_fit_all","question>bound_problem")
a(r"packing/packer",r"_quick_bound$","rooms>free_capacities","plain>by_true_price","worth>dual_prices")
a(r"packing/packer",r"_buy_well$","rents>extra_prices")
a(r"packing/packer",r"_buy$","name>procedure","pool>offering_index")
a(r"packing/placing",r"place\.on_bins$","asked>with_free_bins")
a(r"packing/priced_problem",r"PricedProblem.members$","one>entry")
a(r"packing/priced_problem",r"(make_ground|revalue|_slant)$","worth>dual_prices")
a(r"packing/purchase/headroom",r"find_mix$","worth>dual_prices")
a(r"packing/purchase/headroom",r".*","room>available","worths>values")
a(r"packing/purchase/launch_groups",r".*","ways>choices","room>amount_of_bin")
a(r"packing/purchase/launch_options",r"Offers.pools$","pool>offering")
a(r"packing/purchase/launch_options",r"_cheapest_pool$","pool>offering")
a(r"packing/purchase/launch_options",r".*","pools>priced_options","pool>priced_option","room_left>limits_left","room>allocatable")
a(r"packing/purchase/purchase",r"(within_limits|could_be_held|_taken|_take_all|_take_what_fits|_cheapest_ways|_ways_of)$","room>limits_left")
a(r"packing/purchase/purchase",r".*","ways>options_by_bin_type","way>group_options","planned>patterns","other_planned>pattern")
a(r"packing/search/aggregate",r"coarsen$","worth>dual_prices")
a(r"packing/search/aggregate",r"_coarse_kinds$","room>allocatable")
a(r"packing/search/column_generation",r"_few_first$","few>rare","value>signature_number","worths>values_by_signature")
a(r"packing/search/column_generation",r"(plan_by_patterns|_reuse)$","pool>column_pool")
a(r"packing/search/completion",r"_end$","one>pattern","hopes>expected_value","ends>last_patterns","looked>tried_two")
a(r"packing/search/completion",r"_two_nodes$","ends>last_patterns","hopeful>candidates")
a(r"packing/search/completion",r"_best_filling$","hopes>expected_value","worth>value_left")
a(r"packing/search/disaggregate",r"seat$","hall>unplaced","seated>placed","worth>coarse_value")
a(r"packing/search/disaggregate",r"_seat_one$","hall>unplaced","planned>pattern","worth>coarse_value")
a(r"packing/search/disaggregate",r"_IdenticalNodes.__init__$","seats>classes_by_coarse")
a(r"packing/search/fewest_nodes",r"_add$","turn>quota","opened>open_nodes")
a(r"packing/search/fewest_nodes",r"fewest_nodes$","opened>open_nodes")
a(r"packing/search/fewest_nodes",r"largest_kinds$","one>bin_type")
a(r"packing/search/fill_node",r".*","tight>scarce_extras","lot>weighted_count","room_cpu>bin_cpu","room_memory>bin_memory","slant>own_lean","slants>memory_lean","room>allocatable")
a(r"packing/search/first_fit",r"_Node.__init__$","mask_place>type_index","room>available")
a(r"packing/search/first_fit",r"pack_simply$","rooms>allocatable","room>amounts","one>item_class")
a(r"packing/search/first_fit",r"_buy$","rooms>allocatable","room>amounts","one>item_class")
a(r"packing/search/first_fit",r"_packed$","pools>offerings","pool>offering")
a(r"packing/search/first_fit",r"_fitting$","room>available")
a(r"packing/search/greedy",r"_buy_half$","one>pattern","aims>nodes_to_buy")
a(r"packing/search/identical_pods",r"cover_identical$","ways>choices","kind>bin_type")
a(r"packing/search/identical_pods",r"_fitting$","one>entry","kind>bin_type")
a(r"packing/search/local_search",r".*","draws>random","planned>pattern")
a(r"packing/search/portfolio",r"best_plan$","target>target_cost","name>best_procedure")
a(r"packing/search/relocate",r"_Relocation._move$","target>destination","best>least_added")
a(r"packing/search/relocate",r".*","gone>removed","come>added","questions>evaluations","planned>pattern")
a(r"packing/search/search",r"search$","target>target_cost","tight>lower_bound","name>procedure")
a(r"packing/search/search",r"_with_kinds$","worth>dual_prices")
a(r"packing/second_tries",r"rents_of_limits$","pool>offering_index")
a(r"packing/seeded_random",r"SeededRandom.below$","limit>end")
a(r"packing/symmetry",r".*","slots>pseudo_places","room>amounts")
a(r"packing/(search|purchase|exact|priced|packer)",r".*","plan>patterns","limit>cutoff")
a(r"packing/",r".*","worth>value","shapes>node_types","shape>node_type","kinds>bin_types","kind>bin_type","room>allocatable")

def lookup(rel,q,name):
    for f,qr,o,n in AUTO:
        if o==name and f.search(rel) and qr.fullmatch(q.rstrip()) if qr.pattern.endswith("$") else (o==name and f.search(rel) and qr.match(q)): return n
    return None
lines=[]; warn=[]
DEFS=[]   # (file, dotted, new) filled below
exec(open("/tmp/map-A-tools/a_defs.py").read())
globalmap=collections.defaultdict(dict) # per file: old->new of module-level names visible there
byfile={}
for f,d,n in DEFS:
    if "." not in d: byfile[(f,d)]=n
def mod(f): return f[:-3].replace("/",".")
modmap={}
for (f,d),n in byfile.items(): modmap[(mod(f),d)]=n
def visible(p,t):
    m={}
    rel=str(p.relative_to(root))
    for x in ast.walk(t):
        if isinstance(x,ast.ImportFrom) and x.module:
            for al in x.names:
                if (x.module,al.name) in modmap and not al.asname: m[al.name]=modmap[(x.module,al.name)]
    for (f,d),n in byfile.items():
        if f==rel: m[d]=n
    return m
class Scope:
    pass
def do(p):
    rel=str(p.relative_to(root)); t=ast.parse(p.read_text()); vis=visible(p,t); out=[]
    def fn(node,q,outer):
        qq=q+[node.name]; qs=".".join(qq)
        ps=[x.arg for x in [*node.args.posonlyargs,*node.args.args,*node.args.kwonlyargs,*([node.args.vararg] if node.args.vararg else []),*([node.args.kwarg] if node.args.kwarg else [])]]
        mp={}
        ren=[]
        for x in ps:
            n=lookup(rel[7:],qs,x)
            if n and n!=x: ren.append((f"{qs}({x})",x,n,"P")); mp.setdefault(x,n)
        scopes=collections.OrderedDict()
        names=set(ps)
        def w(n,sc,bound):
            for c in ast.iter_child_nodes(n):
                if isinstance(c,(ast.FunctionDef,ast.ClassDef)):
                    names.add(c.name)
                    for z in ast.walk(c):
                        if isinstance(z,ast.Name): names.add(z.id)
                    continue
                if isinstance(c,(ast.ListComp,ast.SetComp,ast.GeneratorExp,ast.DictComp)): w(c,id(c),bound); continue
                if isinstance(c,ast.Lambda):
                    for x in c.args.args: scopes.setdefault((x.arg,id(c)),("L",c)); names.add(x.arg)
                    w(c,id(c),bound); continue
                if isinstance(c,ast.Name):
                    names.add(vis.get(c.id,c.id))
                    if isinstance(c.ctx,ast.Store): scopes.setdefault((c.id,sc),("V",n))
                if isinstance(c,(ast.Import,ast.ImportFrom)):
                    for al in c.names: names.add(vis.get(al.name,al.asname or al.name))
                w(c,sc,bound)
        for st in node.body: 
            w(ast.Module([st],[]),id(node),None)
        for d in node.args.defaults+[z for z in node.args.kw_defaults if z]: pass
        for (nm,sc),(k,_) in scopes.items():
            if sc==id(node) and nm in ps: continue
            n=lookup(rel[7:],qs,nm)
            if n and n!=nm: ren.append((f"{qs}:{nm}",nm,n,k)); mp.setdefault(nm,n)
        # collisions
        news=collections.defaultdict(set)
        for o,n in mp.items(): news[n].add(o)
        for n,os in news.items():
            if len(os)>1: warn.append(f"{rel} {qs}: {sorted(os)} -> {n} (two)")
            if n in names and n not in mp: warn.append(f"{rel} {qs}: {sorted(os)} -> {n} EXISTS")
            elif n in names: warn.append(f"{rel} {qs}: {sorted(os)} -> {n} order")
        # order: a name must be freed before it is taken
        pend=ren[:]; done=[]
        while pend:
            for i,r in enumerate(pend):
                if not any(o==r[2] for (_,o,_,_) in pend if o!=r[1]): done.append(pend.pop(i)); break
            else: warn.append(f"{rel} {qs} cycle"); done+=pend; break
        idx={}
        for i,(s_,o_,n_,k_) in enumerate(done): idx.setdefault(s_,i)
        done=sorted(done,key=lambda r:(idx[r[0]],r[3]=='L'))
        for s,o,n,k in done: out.append(f"{rel} :: {s} -> {n}" + ("            # a lambda's parameter" if k=="L" else ""))
        for st in ast.walk(node):
            pass
        rec(node,qq)
    def rec(node,q):
        for c in ast.iter_child_nodes(node):
            if isinstance(c,(ast.FunctionDef,ast.AsyncFunctionDef)): fn(c,q,None)
            elif isinstance(c,ast.ClassDef): rec(c,q+[c.name])
            elif not isinstance(c,ast.expr): rec(c,q)
    rec(t,[])
    return out
for room in ("scheduling","packing","planning"):
    for p in sorted(root.glob(f"shared/{room}/**/*.py")):
        o=do(p)
        if o: lines.append(f"# {p.relative_to(root)}"); lines+=o
if __name__=="__main__":
    print(len(lines)); print("\n".join(warn))
