/** Whether the service is away: what one request finds out holds for all that are under way and all that wait. */
export class Outage {
  readonly #monotonicMs: () => number;
  #sinceMs: number | undefined;
  #changed = (): void => {};

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Milliseconds since the first request failed that none has succeeded after; 0 when the last one has. */
  get lastsMs(): number {
    return this.#sinceMs === undefined ? 0 : this.#monotonicMs() - this.#sinceMs;
  }

  get isOn(): boolean {
    return this.#sinceMs !== undefined;
  }

  /** Calls back when an outage begins and when it is over. */
  onChange(callback: () => void): void {
    this.#changed = callback;
  }

  /** A request has failed in a way that says that the next one may fail likewise. */
  failed(): void {
    if (this.isOn) return;
    this.#sinceMs = this.#monotonicMs();
    this.#changed();
  }

  /** A request has been accepted. */
  succeeded(): void {
    if (!this.isOn) return;
    this.#sinceMs = undefined;
    this.#changed();
  }
}
