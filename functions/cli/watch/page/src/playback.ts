import type { Message } from "./protocol";
import type { Store } from "./store";

const AGAIN_MS = 2000;

export type State = "live" | "lost" | "ended" | "paused";

/** The part of an EventSource that is used here. */
export interface Stream {
  onmessage: ((event: MessageEvent<string>) => void) | null;
  onerror: ((event: Event) => void) | null;
  addEventListener(name: "end", heard: () => void): void;
  close(): void;
}

/** Reads the messages of a cluster, or of a recording that can be paused, moved in and played faster. */
export class Playback {
  state: State = "live";
  private stream: Stream | undefined;
  /** Whether the recording stands still, at what a seek leads to as well. */
  private paused = false;

  constructor(
    private store: Store,
    private changed: () => void,
    private connect: (address: string) => Stream,
  ) {
    this.open("stream");
  }

  pause(): void {
    this.paused = true;
    this.stop("paused");
  }

  play(): void {
    this.paused = false;
    const { recorded } = this.store;
    if (recorded) this.from(this.state === "ended" ? 0 : this.store.position(), recorded.speed);
  }

  seek(at: number): void {
    if (this.store.recorded) this.from(at, this.store.recorded.speed);
  }

  setSpeed(speed: number): void {
    const { recorded } = this.store;
    if (!recorded) return;
    const at = this.store.position();
    this.store.recorded = { ...recorded, speed };
    if (this.state === "live") this.from(at, speed);
    else this.changed();
  }

  private from(at: number, speed: number): void {
    this.open(`stream?at=${at.toFixed(3)}&speed=${speed}`);
  }

  private stop(state: State): void {
    this.stream?.close();
    this.store.freeze();
    this.state = state;
    this.changed();
  }

  private open(address: string): void {
    this.stream?.close();
    const stream = this.connect(address);
    this.stream = stream;
    stream.onmessage = (event) => {
      this.state = "live";
      this.store.apply(JSON.parse(event.data) as Message);
      if (this.paused) this.stop("paused");
      else this.changed();
    };
    stream.onerror = () => {
      // A live cluster is connected to again by the browser, and its whole is sent first.
      this.state = "lost";
      if (this.store.recorded) {
        this.stop("lost");
        setTimeout(() => this.state === "lost" && this.play(), AGAIN_MS);
      } else this.changed();
    };
    stream.addEventListener("end", () => this.stop("ended"));
  }
}
