import { memo } from "./memo";
import { age, dollars, share, stateOf, sum } from "./format";
import type { NodeView } from "./protocol";

const ORDER = ["not ready", "going", "launching", "launched", "registered", "initialized"];

/** All nodes as a table: what the picture shows, for keyboard and screen reader. */
export function NodeTable({ nodes, now, choose }: { nodes: NodeView[]; now: number; choose: (name: string) => void }) {
  const sorted = [...nodes].sort(
    (a, b) => ORDER.indexOf(a.phase) - ORDER.indexOf(b.phase) || (a.name < b.name ? -1 : 1),
  );
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Nodes">
      <table>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Type</th>
            <th scope="col">Zone</th>
            <th scope="col">Capacity</th>
            <th scope="col" class="number">$/h</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Pods</th>
            <th scope="col" class="number">cpu</th>
            <th scope="col" class="number">Memory</th>
            <th scope="col" class="number">Age</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((node) => (
            <Row key={node.name} node={node} old={age(node.since, now)} choose={choose} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Row = memo(
  ({ node, old, choose }: { node: NodeView; old: string; choose: (name: string) => void }) => (
    <tr>
      <th scope="row">
        <button type="button" class="link" onClick={() => choose(node.name)}>
          {node.name}
        </button>
      </th>
      <td>{node.type}</td>
      <td>{node.zone}</td>
      <td>{node.owner ? node.capacity_type : "not by Dovetail"}</td>
      <td class="number">{node.price === null ? "?" : dollars(node.price).slice(1)}</td>
      <td class={`state ${node.phase.replace(" ", "-")}`}>{stateOf(node)}</td>
      <td class="number">{`${sum(node.pods, "count")}/${node.room}`}</td>
      <td class="number">{share(sum(node.pods, "cpu"), node.cpu)}</td>
      <td class="number">{share(sum(node.pods, "memory"), node.memory)}</td>
      <td class="number">{old}</td>
    </tr>
  ),
  (before, after) => before.node === after.node && before.old === after.old,
);
