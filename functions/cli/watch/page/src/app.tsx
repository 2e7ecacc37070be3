import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { matching, ownerWord, type Aspect, type Sorting } from "./arrange";
import { Chart, originOf } from "./chart";
import { Palette } from "./colours";
import { DecisionDialog } from "./decision_dialog";
import { announcement, described } from "./format";
import { NodeTable } from "./node_table";
import { ComingAndGoing, Decisions, Figures, FoundPods, Legend, NodePanel, Waiting } from "./panels";
import { amounts, Picture, type Look } from "./picture";
import type { Playback } from "./playback";
import { Player } from "./player";
import type { Totals } from "./protocol";
import type { Store } from "./store";
import { isTyping, Toolbar } from "./toolbar";

/** Text changes at most so often; the picture follows each frame. */
const TEXT_MS = 250;
const SAID_MS = 4000;

const DARK = matchMedia("(prefers-color-scheme: dark)");
const THEMES = ["system", "dark", "light"] as const;
type Chosen = (typeof THEMES)[number];

interface Props {
  store: Store;
  playback: Playback;
  /** Calls back when something has changed; returns what ends that. */
  listen: (changed: () => void) => () => void;
}

export function App({ store, playback, listen }: Props) {
  const [now, setNow] = useState(store.now());
  const [table, setTable] = useState(false);
  const [theme, setTheme] = useState<Chosen>(remembered);
  const [themed, setThemed] = useState<"dark" | "light">(theme === "system" ? systems() : theme);
  const [chosen, setChosen] = useState<string>();
  const [decision, setDecision] = useState<string>();
  const [said, setSaid] = useState("");
  const [palette] = useState(() => new Palette());
  const [query, setQuery] = useState("");
  const [group, setGroup] = useState<Aspect>();
  const [colour, setColour] = useState<Aspect>();
  const [sorting, setSorting] = useState<Sorting>({ by: "phase", descending: false });
  const [day, setDay] = useState(false);
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
    setThemed(theme === "system" ? systems() : theme);
    try {
      localStorage.setItem("dovetail-theme", theme);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  }, [theme]);

  useLayoutEffect(() => {
    document.documentElement.dataset.theme = themed;
  }, [themed]);
  useEffect(() => {
    const follow = () => setThemed(theme === "system" ? systems() : theme);
    DARK.addEventListener("change", follow);
    return () => DARK.removeEventListener("change", follow);
  }, [theme]);

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || document.querySelector("dialog[open]")) return;
      if (event.key === "t") setTable((shown) => !shown);
      else if (event.key === "d") setTheme(following);
      else if (event.key === "Escape") setChosen(undefined);
      else if (event.key === " " && store.recorded && !(event.target instanceof HTMLButtonElement) && !onSummary(event)) {
        event.preventDefault();
        if (playback.state === "live") playback.pause();
        else playback.play();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  const look: Look = useMemo(() => ({ matches: matching(query), group, colour }), [query, group, colour]);
  const all = [...store.nodes.values()];
  const shown = query ? all.filter(look.matches) : all;
  const owner = ownerWord(all);
  const node = chosen === undefined ? undefined : store.nodes.get(chosen);
  /** Follows a link: the node is shown even if the filter leaves it out. */
  const follow = (name: string | undefined) => {
    const linked = name === undefined ? undefined : store.nodes.get(name);
    if (linked && !look.matches(linked)) setQuery("");
    setChosen(name);
  };
  const state = playback.state;
  const points = day || !store.opened ? store.history : store.history.filter((point) => point[0] >= store.opened - 1);
  return (
    <>
      <header class="bar">
        <h1>
          <img src="./mark.svg" alt="" width="26" height="26" />
          Dovetail <span>{store.cluster}</span>
          <small class={`link-state ${state}`}>
            {state === "lost" ? "connection lost, trying again" : state === "ended" ? "recording ended" : state === "paused" ? "recording paused" : store.recorded ? "recording" : "live"}
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
      <Player store={store} playback={playback} />
      <main>
        <div class="stage">
          <Toolbar
            query={query}
            find={setQuery}
            group={group}
            groupBy={setGroup}
            colour={colour}
            colourBy={setColour}
            owner={owner}
            found={query && `${amounts(shown)} of ${all.length.toLocaleString("en-US")}`}
          />
          {table ? (
            <NodeTable
              nodes={shown}
              owner={owner}
              now={now}
              sorting={sorting}
              sort={setSorting}
              group={group}
              colour={colour}
              palette={palette}
              chosen={chosen}
              choose={setChosen}
            />
          ) : (
            <>
              <Picture store={store} palette={palette} look={look} shown={shown} theme={themed} chosen={chosen} choose={setChosen} />
              <div class="key">
                <Legend nodes={shown} palette={palette} colour={colour} find={setQuery} />
                <p>
                  Each square is a node, its area as large as it is: <b>CPU left, memory right</b>, filled by pods from below.{" "}
                  <span class="mark coming">coming</span> <span class="mark going">going</span> <span class="mark bad">not ready</span>
                </p>
              </div>
            </>
          )}
        </div>
        <aside>
          {node && <NodePanel node={node} colours={palette.workloads} now={now} close={() => setChosen(undefined)} open={setDecision} />}
          <FoundPods nodes={shown} waiting={store.waiting} query={query} choose={follow} />
          <section aria-labelledby="price">
            <h2 id="price">
              Dollars per hour <span class="mark price">Dovetail's nodes</span> <span class="mark bound">lower bound</span>
              <span class="mark count">nodes</span>
            </h2>
            <Chart points={points} theme={themed} />
            {!store.recorded && store.opened > 0 && (
              <p class="quiet">
                <button type="button" class="link" aria-pressed={day} onClick={() => setDay(!day)}>
                  Last day
                </button>{" "}
                {day ? originOf(store.history, store.opened) : "Since this was opened."}
              </p>
            )}
          </section>
          <ComingAndGoing store={store} now={now} choose={follow} find={setQuery} />
          <Waiting groups={store.waiting} nodes={store.nodes} now={now} choose={follow} />
          <Decisions decisions={store.decisions} open={setDecision} />
          {store.notes.map((note) => (
            <p key={note} class="note">
              {note}
            </p>
          ))}
        </aside>
      </main>
      {decision && (
        <DecisionDialog
          id={decision}
          nodes={store.nodes}
          colours={palette.workloads}
          saves={!store.recorded}
          close={() => setDecision(undefined)}
          choose={follow}
          find={setQuery}
        />
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

function onSummary(event: KeyboardEvent): boolean {
  return event.target instanceof HTMLElement && event.target.tagName === "SUMMARY";
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
