const POSTED = 1;
const ENDED = 2;

/** The received requests and runs. A run or span is identified by its id, and has a start and an end. */
export class Arrivals {
  requests = 0;
  bytes = 0;
  /** Uncompressed. */
  bodyBytes = 0;
  payloadBytes = 0;
  malformed = 0;
  startRecords = 0;
  endRecords = 0;
  #states = new Map();
  #posted = 0;
  #complete = 0;

  start(id) {
    this.startRecords++;
    this.#note(id, POSTED);
  }

  end(id) {
    this.endRecords++;
    this.#note(id, ENDED);
  }

  /** The counts. A complete run has a start and an end. */
  get summary() {
    const { requests, bytes, bodyBytes, payloadBytes, malformed, startRecords, endRecords } = this;
    return {
      requests,
      bytes,
      bodyBytes,
      payloadBytes,
      malformed,
      startRecords,
      endRecords,
      posted: this.#posted,
      complete: this.#complete,
    };
  }

  #note(id, state) {
    const before = this.#states.get(id) ?? 0;
    const after = before | state;
    if (after === before) return;
    this.#states.set(id, after);
    if (state === POSTED) this.#posted++;
    if (after === (POSTED | ENDED)) this.#complete++;
  }
}
