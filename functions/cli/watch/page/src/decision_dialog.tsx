import { useEffect, useRef, useState } from "preact/hooks";
import type { Colours } from "./colours";
import { counted, dollars, launchedBy } from "./format";
import type { Decision, NodeView, Option, PlannedNode } from "./protocol";

const OPTIONS = 10;

interface Props {
  id: string;
  nodes: Map<string, NodeView>;
  colours: Colours;
  /** Whether it can be saved: a recording does not hold it. */
  saves: boolean;
  close: () => void;
  choose: (name: string) => void;
  /** Shows only the nodes that it launched. */
  find: (query: string) => void;
}

/** One decision, opened: what was looked at, planned, what came of it, why not less, and how to replay it. */
export function DecisionDialog({ id, nodes, colours, saves, close, choose, find }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [decision, setDecision] = useState<Decision>();
  const [failed, setFailed] = useState("");
  useEffect(() => {
    const shown = dialog.current!;
    if (!shown.open) shown.showModal();
    fetch(`decisions/${id}`)
      .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`${answer.status}`))))
      .then(setDecision)
      .catch(() => setFailed("This decision is not kept here."));
  }, [id]);
  return (
    <dialog ref={dialog} class="decision" onClose={close} aria-labelledby="decision-title">
      <header>
        <h2 id="decision-title">{decision ? decision.cause : failed || "Reading the decision …"}</h2>
        <button type="button" class="close" onClick={() => dialog.current!.close()} aria-label="Close the decision">
          ✕
        </button>
      </header>
      {decision && (
        <Opened
          decision={decision}
          nodes={nodes}
          colours={colours}
          saves={saves}
          choose={(name) => {
            dialog.current!.close();
            choose(name);
          }}
          find={(query) => {
            dialog.current!.close();
            find(query);
          }}
        />
      )}
    </dialog>
  );
}

interface OpenedProps extends Omit<Props, "id" | "close"> {
  decision: Decision;
}

function Opened({ decision, nodes, colours, saves, choose, find }: OpenedProps) {
  const standing = launchedBy(decision.id, nodes.values());
  const total = decision.nodes.reduce((count, node) => count + node.count, 0);
  return (
    <>
      <p class="quiet">
        {new Date(decision.at).toLocaleString("en-GB")} · <code>{decision.id}</code>
      </p>
      <dl class="figures small">
        <div class="figure price">
          <dt>planned</dt>
          <dd>
            <b>{dollars(decision.cost)}/h</b>
            <span>{`${counted(total, "node")} for ${counted(decision.pods, "pod")}`}</span>
          </dd>
        </div>
        <div class="figure bound">
          <dt>lower bound</dt>
          <dd>
            <b>{decision.bound ? `${dollars(decision.bound)}/h` : "–"}</b>
            <span>{decision.bound ? "proved" : decision.cost ? "nothing proved" : "no node is planned"}</span>
          </dd>
        </div>
        <div class="figure">
          <dt>{decision.bound_is_close ? "gap" : "at most above"}</dt>
          <dd>
            <b>{decision.bound ? `${decision.gap_percent.toFixed(2)} %` : "–"}</b>
            <span>{decision.bound ? gapText(decision) : ""}</span>
          </dd>
        </div>
      </dl>
      <section>
        <h3>Looked at</h3>
        <p>
          {`${decision.looked_at.offerings.toLocaleString("en-US")} offerings of ${counted(decision.looked_at.types, "instance type")}`}
          {decision.looked_at.unavailable > 0 && `; ${decision.looked_at.unavailable} left out, EC2 was out of them lately`}
        </p>
        <ul class="plain">
          {decision.looked_at.owners.map((owner) => (
            <li key={owner.name}>
              <b>{owner.name}</b> {owner.reason || `admits ${owner.offerings.toLocaleString("en-US")} offerings of ${counted(owner.types, "type")} in ${owner.zones.join(", ")}`}
            </li>
          ))}
        </ul>
      </section>
      <section>
        <h3>Planned</h3>
        {!decision.nodes.length && <p>Nothing.</p>}
        {decision.nodes.map((node, index) => (
          <Planned key={index} node={node} colours={colours} launched={standing} />
        ))}
        {decision.placed.length > 0 && (
          <p>
            On nodes that are there:{" "}
            {decision.placed.map((each, index) => (
              <span key={each.node}>
                {`${index ? ", " : ""}${counted(each.count, "pod")} on `}
                <NodeLink name={each.node} nodes={nodes} choose={choose} />
              </span>
            ))}
          </p>
        )}
        {decision.remove.length > 0 && <p>
            Removed:{" "}
            {decision.remove.map((name, index) => (
              <span key={name}>
                {index ? ", " : ""}
                <NodeLink name={name} nodes={nodes} choose={choose} />
              </span>
            ))}
          </p>}
        {decision.unplaced.map((left) => (
          <p key={left.reason}>{`No place for ${counted(left.count, "pod")} (${left.names.join(", ")}${left.count > left.names.length ? " …" : ""}): ${left.reason}.`}</p>
        ))}
      </section>
      {decision.nodes.length > 0 && <CameOfIt decision={decision} planned={total} />}
      {standing.length > 0 && (
        <section>
          <h3>Its nodes</h3>
          <p>
            {standing.slice(0, OPTIONS).map((node, index) => (
              <span key={node.name}>
                {index ? ", " : ""}
                <NodeLink name={node.name} nodes={nodes} choose={choose} />
              </span>
            ))}
            {standing.length > OPTIONS && ` and ${standing.length - OPTIONS} more`}
          </p>
          <button type="button" class="button" onClick={() => find(decision.id)}>
            {standing.length === 1 ? "Show only this node" : `Show only these ${standing.length.toLocaleString("en-US")} nodes`}
          </button>
        </section>
      )}
      <section>
        <h3>Why not cheaper</h3>
        <ul class="plain">
          {decision.why_not_cheaper.map((line) => (
            <li key={line}>{line}</li>
          ))}
          {decision.remark && <li>{`${decision.remark}.`}</li>}
        </ul>
      </section>
      <section>
        <h3>Replay</h3>
        <p class="quiet">Decides again from the same snapshot; with another setting it says what that would change.</p>
        <pre tabIndex={0}>{replay(decision)}</pre>
        {saves && (
          <a class="button" href={`decisions/${decision.id}.json.gz`} download>
            Save the decision
          </a>
        )}
      </section>
    </>
  );
}

/** A node by its name: a link while it is there. */
function NodeLink({ name, nodes, choose }: Pick<OpenedProps, "nodes" | "choose"> & { name: string }) {
  if (!nodes.has(name)) return <>{name}</>;
  return (
    <button type="button" class="link" onClick={() => choose(name)}>
      {name}
    </button>
  );
}

function CameOfIt({ decision, planned }: { decision: Decision; planned: number }) {
  const { outcome } = decision;
  const launched = outcome ? outcome.launched.reduce((count, row) => count + row[0], 0) : 0;
  const more = outcome ? outcome.cost - decision.cost : 0;
  return (
    <section>
      <h3>What came of it</h3>
      {!outcome && <p>Nothing is recorded: launches are under way, held back, or it was long ago.</p>}
      {outcome && launched > 0 && (
        <p>
          {`Launched ${outcome.launched.map(([count, type, paid]) => `${count} × ${type} ${paid}`).join(", ")}: ${dollars(outcome.cost)}/h`}
          {launched === planned && more !== 0 && `, ${dollars(Math.abs(more))}/h ${more > 0 ? "more" : "less"} than planned`}.
        </p>
      )}
      {outcome && launched < planned && (
        <p>{outcome.ended ? `${planned - launched} of ${planned} nodes were not launched.` : `${planned - launched} of ${planned} nodes are under way.`}</p>
      )}
      {outcome?.refused.map(([code, text]) => (
        <p key={code + text}>
          EC2 refused: <code>{code}</code> {text}
        </p>
      ))}
    </section>
  );
}

function gapText(decision: Decision): string {
  const more = decision.cost - decision.bound;
  return more ? `${dollars(more)}/h at most to save` : "proved to be the cheapest";
}

function replay(decision: Decision): string {
  const file = `${decision.id}.json.gz`;
  return [
    `aws s3 cp s3://${decision.bucket}/${decision.key} .`,
    `dovetail replay ${file}`,
    `dovetail replay ${file} --set thorough=true`,
  ].join("\n");
}

function Planned({ node, colours, launched }: { node: PlannedNode; colours: Colours; launched: NodeView[] }) {
  const [all, setAll] = useState(false);
  const dearest = Math.max(...node.options.map((option) => option[3]));
  const shown = all ? node.options : node.options.slice(0, OPTIONS);
  const first = node.options[0]!;
  return (
    <div class="planned">
      <h4>
        {`${node.count} × ${first[0]}`} <span>{`${node.owner}: ${counted(node.pods, "pod")} each, cpu ${node.cpu_percent} %, memory ${node.memory_percent} %`}</span>
      </h4>
      <ul class="legend">
        {node.shares.map((each) => (
          <li key={each.workload}>
            <i style={{ background: colours.of(each.workload) }} />
            {each.workload} <span>{each.count}</span>
          </li>
        ))}
      </ul>
      <p class="quiet">{`${counted(node.options.length, "option")} that hold the same pods; EC2 may give any of them${node.fallback.length ? `, and ${node.fallback.length} of the other capacity type if it has none` : ""}:`}</p>
      <ol class="options">
        {shown.map((option) => {
          const count = launched.filter((each) => matches(each, option)).length;
          return (
            <li key={option.slice(0, 3).join()} class={count ? "taken" : ""}>
              <span>{`${option[0]} ${option[1]} ${option[2]}`}</span>
              <i style={{ width: `${(110 * option[3]) / dearest}px` }} />
              <b>{dollars(option[3])}</b>
              <em>{count ? `${count} launched, still there` : ""}</em>
            </li>
          );
        })}
      </ol>
      {node.options.length > OPTIONS && (
        <button type="button" class="link" onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? "fewer" : `all ${node.options.length} options`}
        </button>
      )}
    </div>
  );
}

function matches(node: NodeView, option: Option): boolean {
  return node.type === option[0] && node.zone === option[1] && node.capacity_type === option[2];
}
