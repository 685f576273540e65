import type { BatchSize } from './queue.ts';

/** A service that refuses less than this refuses the runs, not the batch. */
const BYTES_MIN = 64 * 1024;

/** What every accepted batch that was about as large as it may be adds. */
const GROWTH = 1.01;

/**
 * How large a batch may be: what the service says, or the defaults, until it calls one too large (413). From then on half
 * of that, which grows again by a hundredth with every full batch that is accepted: about one in seventy is refused where a
 * gateway takes less than the service behind it says.
 */
export class BatchLimit {
  #said: BatchSize;
  #size: BatchSize;

  constructor(defaults: BatchSize) {
    this.#said = defaults;
    this.#size = defaults;
  }

  get size(): BatchSize {
    return this.#size;
  }

  /** Takes what the service says of itself; what it has refused stays refused. */
  say(said: BatchSize): void {
    const isLowered = this.#size.bytes < this.#said.bytes;
    const bytes = isLowered ? Math.min(this.#size.bytes, said.bytes) : said.bytes;
    this.#said = said;
    this.#size = { runs: said.runs, bytes };
  }

  /** A batch of so many bytes was too large. */
  refused(bytes: number): void {
    const half = Math.max(BYTES_MIN, Math.floor(bytes / 2));
    if (half < this.#size.bytes) this.#size = { ...this.#size, bytes: half };
  }

  accepted(bytes: number): void {
    const { runs, bytes: most } = this.#size;
    if (most >= this.#said.bytes || bytes < most / 2) return;
    this.#size = { runs, bytes: Math.min(this.#said.bytes, Math.ceil(most * GROWTH)) };
  }
}
