import { monotonicNowMs } from '../base/clock.ts';

const REDRAW_MS = 1_000;

/**
 * Shows how a wait stands: a line for each status, with the time since the wait began; on a terminal the last line also tells the time as it
 * passes.
 */
export class WaitProgress {
  readonly #stream: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;
  readonly #startedMs: number;
  #status: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>) {
    this.#stream = stream;
    this.#startedMs = monotonicNowMs();
  }

  /** A line of its own, before there is a status. */
  note(line: string): void {
    this.#stream.write(`${line}\n`);
  }

  show(status: string): void {
    if (this.#stream.isTTY && this.#status !== undefined) this.#stream.write('\n');
    this.#status = status;
    if (!this.#stream.isTTY) this.#stream.write(`${this.#line()}\n`);
    else {
      this.#redraw();
      this.#timer ??= setInterval(() => this.#redraw(), REDRAW_MS).unref();
    }
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#stream.isTTY && this.#status !== undefined) this.#stream.write('\n');
    this.#status = undefined;
  }

  #redraw(): void {
    this.#stream.write(`\r${this.#line()}\x1b[K`);
  }

  #line(): string {
    const seconds = Math.round((monotonicNowMs() - this.#startedMs) / 1_000);
    return `${this.#status}  ${seconds} s`;
  }
}
