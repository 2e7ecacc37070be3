import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Chart } from "./chart";
import { Colours } from "./colours";
import { DecisionDialog } from "./decision_dialog";
import { announcement, described } from "./format";
import { NodeTable } from "./node_table";
import { ComingAndGoing, Decisions, Figures, Legend, NodePanel, Waiting } from "./panels";
import { Picture } from "./picture";
import type { Totals } from "./protocol";
import type { Store } from "./store";

/** Text changes at most so often; the picture follows each frame. */
const TEXT_MS = 250;
const SAID_MS = 4000;

const DARK = matchMedia("(prefers-color-scheme: dark)");
const THEMES = ["system", "dark", "light"] as const;
type Chosen = (typeof THEMES)[number];

interface Props {
  store: Store;
  /** Calls back when something has changed; returns what ends that. */
  listen: (changed: () => void) => () => void;
  connected: () => "live" | "lost" | "ended";
}

export function App({ store, listen, connected }: Props) {
  const [now, setNow] = useState(store.now());
  const [table, setTable] = useState(false);
  const [theme, setTheme] = useState<Chosen>(remembered);
  const [shown, setShown] = useState<"dark" | "light">(theme === "system" ? systems() : theme);
  const [chosen, setChosen] = useState<string>();
  const [decision, setDecision] = useState<string>();
  const [said, setSaid] = useState("");
  const [colours] = useState(() => new Colours());
  const before = useRef<Totals>(undefined);

  useEffect(() => {
    let changed = true;
    const end = listen(() => {
      changed = true;
    });
    let spoken = 0;
    const timer = setInterval(() => {
      const time = Date.now();
      if (!changed && time % 1000 > TEXT_MS) return;
      changed = false;
      setNow(store.now());
      if (store.synced && time - spoken > SAID_MS) {
        const text = before.current ? announcement(before.current, store.totals) : "";
        before.current = store.totals;
        if (text) {
          spoken = time;
          setSaid(text);
        }
      }
    }, TEXT_MS);
    return () => {
      clearInterval(timer);
      end();
    };
  }, [store]);

  useEffect(() => {
    setShown(theme === "system" ? systems() : theme);
    try {
      localStorage.setItem("dovetail-theme", theme);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  }, [theme]);

  useLayoutEffect(() => {
    document.documentElement.dataset.theme = shown;
  }, [shown]);
  useEffect(() => {
    const follow = () => setShown(theme === "system" ? systems() : theme);
    DARK.addEventListener("change", follow);
    return () => DARK.removeEventListener("change", follow);
  }, [theme]);

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.key === "t") setTable((shown) => !shown);
      else if (event.key === "d") setTheme(following);
      else if (event.key === "Escape") setChosen(undefined);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  const node = chosen === undefined ? undefined : store.nodes.get(chosen);
  const state = connected();
  return (
    <>
      <header class="bar">
        <h1>
          <img src="./mark.svg" alt="" width="26" height="26" />
          Dovetail <span>{store.cluster}</span>
          <small class={`link-state ${state}`}>
            {state === "lost" ? "connection lost, trying again" : state === "ended" ? "recording ended" : store.recorded ? "recording" : "live"}
          </small>
        </h1>
        <Figures store={store} />
        <div class="controls">
          <button type="button" aria-pressed={table} onClick={() => setTable(!table)} title="T">
            {table ? "Picture" : "Table"}
          </button>
          <button type="button" onClick={() => setTheme(following(theme))} title="D" aria-label={`Theme: ${theme}`}>
            {theme === "system" ? "Auto" : theme === "dark" ? "Dark" : "Light"}
          </button>
        </div>
      </header>
      <main>
        <div class="stage">
          {table ? (
            <NodeTable nodes={[...store.nodes.values()]} now={now} choose={setChosen} />
          ) : (
            <>
              <Picture store={store} colours={colours} theme={shown} chosen={chosen} choose={setChosen} />
              <div class="key">
                <Legend store={store} colours={colours} />
                <p>
                  Each square is a node, its area as large as it is: <b>cpu left, memory right</b>, filled by pods from below.{" "}
                  <span class="mark coming">coming</span> <span class="mark going">going</span> <span class="mark bad">not ready</span>
                </p>
              </div>
            </>
          )}
        </div>
        <aside>
          {node && <NodePanel node={node} colours={colours} now={now} close={() => setChosen(undefined)} />}
          <section aria-labelledby="price">
            <h2 id="price">
              Dollars per hour <span class="mark price">Dovetail's nodes</span> <span class="mark bound">at least</span>
            </h2>
            <Chart points={store.history} theme={shown} />
          </section>
          <ComingAndGoing store={store} now={now} choose={setChosen} />
          <Waiting groups={store.waiting} now={now} />
          <Decisions decisions={store.decisions} open={setDecision} />
          {store.notes.map((note) => (
            <p key={note} class="note">
              {note}
            </p>
          ))}
        </aside>
      </main>
      {decision && (
        <DecisionDialog id={decision} nodes={[...store.nodes.values()]} colours={colours} close={() => setDecision(undefined)} />
      )}
      <p class="unseen" aria-live="polite" role="status">
        {said}
      </p>
      <p class="unseen" aria-live="assertive">
        {node ? described(node) : ""}
      </p>
    </>
  );
}

/** The theme that the system is set to. */
function systems(): "dark" | "light" {
  return DARK.matches ? "dark" : "light";
}

function following(theme: Chosen): Chosen {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
}

function remembered(): Chosen {
  try {
    const kept = localStorage.getItem("dovetail-theme");
    return THEMES.find((theme) => theme === kept) ?? "system";
  } catch {
    return "system";
  }
}
