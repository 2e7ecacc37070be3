import { useRef } from "preact/hooks";
import type { Playback } from "./playback";
import type { Store } from "./store";

const SPEEDS = [0.5, 1, 2, 4, 8, 16, 60];
/** While the slider is dragged, the recording follows so often. */
const FOLLOW_MS = 150;

/** Plays, pauses and moves in a recording. */
export function Player({ store, playback }: { store: Store; playback: Playback }) {
  const waiting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { recorded } = store;
  if (!recorded) return null;
  const plays = playback.state === "live" || playback.state === "lost";
  const speeds = [...new Set([...SPEEDS, recorded.speed])].sort((a, b) => a - b);
  const seek = (at: number) => {
    clearTimeout(waiting.current);
    waiting.current = setTimeout(() => {
      waiting.current = undefined;
      playback.seek(at);
    }, FOLLOW_MS);
  };
  const at = store.position();
  return (
    <div class="player" role="group" aria-label="Recording">
      <button type="button" onClick={() => (plays ? playback.pause() : playback.play())} aria-keyshortcuts="Space" title="Space">
        {plays ? "Pause" : "Play"}
      </button>
      <input
        type="range"
        min="0"
        max={recorded.length}
        step={recorded.length > 600 ? 5 : 1}
        value={waiting.current ? undefined : at}
        aria-label="Time in the recording"
        aria-valuetext={`${minutes(at)} of ${minutes(recorded.length)}`}
        onInput={(event) => seek(Number(event.currentTarget.value))}
      />
      <span class="time">
        {minutes(at)} / {minutes(recorded.length)} · {new Date(store.now()).toLocaleString("en-GB")}
      </span>
      <label>
        Speed
        <select value={recorded.speed} onChange={(event) => playback.setSpeed(Number(event.currentTarget.value))}>
          {speeds.map((speed) => (
            <option key={speed} value={speed}>
              {speed} ×
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Seconds as minutes, `3:07`, or as hours, `1:03:07`. */
export function minutes(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 60) % 60, whole % 60];
  const text = parts.map((part) => String(part).padStart(2, "0")).join(":");
  return whole >= 3600 ? `${Math.floor(whole / 3600)}:${text}` : text.replace(/^0/, "");
}
