import { grouped, podsMatching, type Aspect } from "./arrange";
import { legend, type Colours, type Palette } from "./colours";
import { age, bigDollars, clock, cores, counted, dollars, gap, gib, share, stateOf, sum } from "./format";
import type { Counted, DecisionSummary, NodeView, Share, WaitingView } from "./protocol";
import { excess, type Store } from "./store";

const LEGEND = 14;

export function Figures({ store }: { store: Store }) {
  const { totals, least } = store;
  const over = excess(totals, least);
  return (
    <dl class="figures">
      <Figure name="per hour" value={bigDollars(totals.price)} note={totals.unpriced ? `${totals.unpriced} of unknown price` : totals.owned < totals.nodes ? `${bigDollars(totals.owned_price)} by Dovetail` : ""} kind="price" />
      <Figure
        name="lower bound"
        value={least ? bigDollars(least.bound) : "–"}
        note={over === null || !totals.owned ? (least ? `${counted(least.pods, "pod")}` : totals.owned || totals.coming ? "not proved yet" : "no node of Dovetail") : `${over >= 0 ? "+" : "−"}${Math.abs(over).toFixed(1)} % above it`}
        kind="bound"
        title="What the same pods cost at least with these Provisioners and prices: proved, not estimated"
      />
      <Figure name={totals.nodes === 1 ? "node" : "nodes"} value={totals.nodes.toLocaleString("en-US")} note={[totals.coming && `${totals.coming} coming`, totals.going && `${totals.going} going`].filter(Boolean).join(", ")} />
      <Figure name={totals.pods === 1 ? "pod runs" : "pods run"} value={totals.pods.toLocaleString("en-US")} note="" />
      <Figure name={totals.waiting === 1 ? "pod waits" : "pods wait"} value={totals.waiting.toLocaleString("en-US")} note="" kind={totals.waiting ? "waits" : ""} />
    </dl>
  );
}

function Figure({ name, value, note, kind = "", title }: { name: string; value: string; note: string; kind?: string; title?: string }) {
  return (
    <div class={`figure ${kind}`} title={title}>
      <dt>{name}</dt>
      <dd>
        <b>{value}</b>
        <span>{note}</span>
      </dd>
    </div>
  );
}

interface LegendProps {
  nodes: NodeView[];
  palette: Palette;
  colour: Aspect | undefined;
  find: (query: string) => void;
}

/** What the colours mean: workloads with their pods, or values with their nodes. A click filters by one. */
export function Legend({ nodes, palette, colour, find }: LegendProps) {
  const all: [string, number, string][] = colour
    ? grouped(nodes, colour).map(({ name, nodes: members }) => [name, members.length, palette.of(members[0]!, colour)])
    : legend(nodes).map(([workload, count]) => [workload, count, palette.workloads.of(workload)]);
  return (
    <ul class="legend" aria-label={colour ? "Colours" : "Workloads"}>
      {all.slice(0, LEGEND).map(([name, count, shown]) => (
        <li key={name}>
          <i style={{ background: shown }} />
          <button type="button" class="plain-link" onClick={() => find(name)} title={`Show only nodes with ${name}`}>
            {name}
          </button>{" "}
          <span>{count.toLocaleString("en-US")}</span>
        </li>
      ))}
      {all.length > LEGEND && <li class="more">and {all.length - LEGEND} more</li>}
    </ul>
  );
}

const MOST_FOUND = 8;

interface Found {
  nodes: NodeView[];
  waiting: WaitingView[];
  query: string;
  choose: (name: string) => void;
}

/** The pods that a query names, each with its node. */
export function FoundPods({ nodes, waiting, query, choose }: Found) {
  const { pods, count } = podsMatching(nodes, query, MOST_FOUND);
  const waits = podsWaiting(waiting, query);
  if (!count && !waits.length) return null;
  return (
    <section aria-labelledby="found">
      <h2 id="found">{counted(count, "pod")} found</h2>
      <ul class="rows">
        {pods.map(({ pod, node }) => (
          <li key={pod}>
            <button type="button" class="row" onClick={() => choose(node)}>
              <span class="main wide">{pod}</span>
              <span class="why">on {node}</span>
            </button>
          </li>
        ))}
        {waits.map((group) => (
          <li key={group.key} class="row">
            <span class="main wide">{group.names.join(", ")}</span>
            <span class="why">{group.reason}</span>
          </li>
        ))}
      </ul>
      {count > pods.length && <p class="quiet">and {(count - pods.length).toLocaleString("en-US")} more</p>}
    </section>
  );
}

function podsWaiting(groups: WaitingView[], query: string): WaitingView[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const has = ({ workload, names }: WaitingView) => {
    const text = [workload, ...names].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return words.length ? groups.filter(has) : [];
}

interface Moves {
  store: Store;
  now: number;
  choose: (name: string) => void;
  find: (query: string) => void;
}

const MOST_MOVES = 8;

export function ComingAndGoing({ store, now, choose, find }: Moves) {
  const nodes = [...store.nodes.values()];
  const going = nodes.filter((node) => node.phase === "going" || node.phase === "not ready");
  const coming = nodes.filter((node) => ["launching", "launched", "registered"].includes(node.phase));
  const moving = [...coming, ...going];
  return (
    <section aria-labelledby="moves">
      <h2 id="moves">Coming and going</h2>
      {!moving.length && <p class="quiet">All nodes stand: none is coming or going.</p>}
      <ul class="rows">
        {moving.length > MOST_MOVES
          ? alike(moving).map(([key, nodes]) => (
              <li key={key}>
                <button type="button" class="row" onClick={() => find(nodes[0]!.phase)} title="Show only these">
                  <span class={`phase ${nodes[0]!.phase.replace(" ", "-")}`}>{nodes[0]!.phase}</span>
                  <span class="main">{counted(nodes.length, "node")}</span>
                  <span class="aside">{age(oldest(nodes), now)}</span>
                  <span class="why">{whyOf(nodes[0]!)}</span>
                </button>
              </li>
            ))
          : moving.map((node) => (
              <li key={node.name}>
                <button type="button" class="row" onClick={() => choose(node.name)}>
                  <span class={`phase ${node.phase.replace(" ", "-")}`}>{node.phase}</span>
                  <span class="main">
                    {node.type} <em>{node.name}</em>
                  </span>
                  <span class="aside">{age(node.since, now)}</span>
                  <span class="why">{whyOf(node)}</span>
                </button>
              </li>
            ))}
      </ul>
    </section>
  );
}

/** Nodes that do the same for the same reason, together. */
function alike(nodes: NodeView[]): [string, NodeView[]][] {
  const groups = new Map<string, NodeView[]>();
  for (const node of nodes) {
    const key = `${node.phase} ${whyOf(node)}`;
    groups.set(key, [...(groups.get(key) ?? []), node]);
  }
  return [...groups].slice(0, MOST_MOVES);
}

function oldest(nodes: NodeView[]): string {
  return nodes.reduce((first, node) => (node.since && node.since < first ? node.since : first), nodes[0]!.since);
}

function whyOf(node: NodeView): string {
  if (node.phase === "going") return node.reason + (node.blocked ? `; held: ${node.blocked}` : "");
  return node.waits_for ? `waits for ${node.waits_for}` : "";
}

interface WaitingProps {
  groups: WaitingView[];
  nodes: Map<string, NodeView>;
  now: number;
  choose: (name: string) => void;
}

export function Waiting({ groups, nodes, now, choose }: WaitingProps) {
  return (
    <section aria-labelledby="waiting">
      <h2 id="waiting">Waiting pods</h2>
      {!groups.length && <p class="quiet">No pod waits.</p>}
      <ul class="rows">
        {groups.slice(0, MOST_MOVES).map((group) => (
          <li key={group.key} class="row">
            <span class="phase waits">{group.count.toLocaleString("en-US")} ×</span>
            <span class="main">{group.workload}</span>
            <span class="aside">{age(group.since, now)}</span>
            <span class="why">
              {group.reason}
              <span class="pods">
                {group.names.join(", ")}
                {group.count > group.names.length && ` and ${(group.count - group.names.length).toLocaleString("en-US")} more`}
              </span>
              {nodes.has(group.node) && (
                <button type="button" class="link" onClick={() => choose(group.node)}>
                  show the node
                </button>
              )}
            </span>
          </li>
        ))}
      </ul>
      {groups.length > MOST_MOVES && <p class="quiet">and {groups.length - MOST_MOVES} more groups</p>}
    </section>
  );
}

export function Decisions({ decisions, open }: { decisions: DecisionSummary[]; open: (id: string) => void }) {
  return (
    <section aria-labelledby="decisions">
      <h2 id="decisions">Last decisions</h2>
      {!decisions.length && <p class="quiet">None is known yet.</p>}
      <ul class="rows">
        {decisions.map((decision) => (
          <li key={decision.id}>
            <button type="button" class="row" onClick={() => open(decision.id)} aria-haspopup="dialog">
              <span class="phase decision">{clock(decision.at)}</span>
              <span class="main whole">{came(decision) || planned(decision)}</span>
              <span class="aside">{price(decision)}</span>
              <span class="why">
                {decision.cause}
                {decision.nodes.length > 0 && `, planned ${dollars(decision.cost)}/h, ${gap(decision)}`}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What came of a decision, empty while it is not over or was not recorded. */
export function came({ nodes, outcome }: Pick<DecisionSummary, "nodes" | "outcome">): string {
  if (!outcome?.ended) return "";
  const missing = nodesOf(nodes) - nodesOf(outcome.launched);
  const why = missing > 0 && outcome.refused[0] ? `: EC2 refused: ${outcome.refused[0][0]}` : "";
  if (!outcome.launched.length) return `launched no node of ${nodesOf(nodes)}${why}`;
  return `launched ${kinds(outcome.launched)}${missing > 0 ? `; ${missing} not${why}` : ""}`;
}

function price(decision: DecisionSummary): string {
  if (!decision.nodes.length) return "";
  return decision.outcome?.ended ? `${dollars(decision.outcome.cost)}/h` : `plans ${dollars(decision.cost)}/h`;
}

function nodesOf(rows: Counted[]): number {
  return rows.reduce((count, row) => count + row[0], 0);
}

function kinds(rows: Counted[]): string {
  const parts = rows.slice(0, 2).map(([count, type, paid]) => `${count} × ${type} ${paid}`);
  if (rows.length > 2) parts.push(counted(rows.length - 2, "more kind"));
  return parts.join(", ");
}

export function planned(decision: DecisionSummary): string {
  const parts = decision.nodes.length ? [`plans ${kinds(decision.nodes)}`] : [];
  if (decision.remove.length) parts.push(`${counted(decision.remove.length, "node")} removed`);
  if (decision.placed) parts.push(`${counted(decision.placed, "pod")} on nodes that are there`);
  if (decision.unplaced) parts.push(`no place for ${counted(decision.unplaced, "pod")}`);
  return parts.join(", ") || "plans no node";
}

interface NodePanelProps {
  node: NodeView;
  colours: Colours;
  now: number;
  close: () => void;
  /** Opens the decision that launched it. */
  open: (id: string) => void;
}

export function NodePanel({ node, colours, now, close, open }: NodePanelProps) {
  return (
    <section class="node" aria-label={`Node ${node.name}`}>
      <header>
        <h2>{node.type || "Node"}</h2>
        <button type="button" class="close" onClick={close} aria-label="Close the node">
          ✕
        </button>
      </header>
      <p class="name">{node.name}</p>
      <dl class="facts">
        <dt>State</dt>
        <dd>{stateOf(node)}</dd>
        <dt>Launched</dt>
        <dd>{[node.capacity_type, node.zone, node.price === null ? "price unknown" : `${dollars(node.price)}/h`].filter(Boolean).join(", ")}</dd>
        <dt>{node.owner_kind || "Owner"}</dt>
        <dd>{[node.owner || "none", !node.ours && "not launched by Dovetail"].filter(Boolean).join(", ")}</dd>
        {node.plan && (
          <>
            <dt>Decision</dt>
            <dd>
              <button type="button" class="link" aria-haspopup="dialog" onClick={() => open(node.plan)}>
                {node.plan}
              </button>
            </dd>
          </>
        )}
        <dt>Age</dt>
        <dd>{age(node.since, now) || "unknown"}</dd>
        <dt>CPU</dt>
        <dd>{`${cores(sum(node.pods, "cpu"))} of ${cores(node.cpu)} cores, ${share(sum(node.pods, "cpu"), node.cpu)}`}</dd>
        <dt>Memory</dt>
        <dd>{`${gib(sum(node.pods, "memory"))} of ${gib(node.memory)}, ${share(sum(node.pods, "memory"), node.memory)}`}</dd>
        <dt>Pods</dt>
        <dd>{`${sum(node.pods, "count")} of ${node.room}${node.promised.length ? `, ${sum(node.promised, "count")} promised` : ""}`}</dd>
        {node.instance && (
          <>
            <dt>Instance</dt>
            <dd>{node.instance}</dd>
          </>
        )}
      </dl>
      <Pods shares={node.pods} colours={colours} />
      {node.promised.length > 0 && (
        <>
          <h3>Promised</h3>
          <Pods shares={node.promised} colours={colours} />
        </>
      )}
      {node.phase !== "launching" && <code>dovetail why node/{node.name}</code>}
    </section>
  );
}

/** Pods by workload; each workload opens to their names. */
function Pods({ shares, colours }: { shares: Share[]; colours: Colours }) {
  return (
    <ul class="shares">
      {shares.map((each) => (
        <li key={each.workload}>
          <details>
            <summary>
              <i style={{ background: colours.of(each.workload) }} />
              {each.workload} <span>{each.count}</span>
            </summary>
            <ul>
              {each.names.map((name) => (
                <li key={name}>{name}</li>
              ))}
            </ul>
          </details>
        </li>
      ))}
    </ul>
  );
}
