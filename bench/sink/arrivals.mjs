const POSTED = 1;
const ENDED = 2;

/** What has arrived: each run or span by its id, whether its start is there and whether its end is, and the requests. */
export class Arrivals {
  requests = 0;
  refused = 0;
  bytes = 0;
  /** Of bodies as they were before they were compressed. */
  bodyBytes = 0;
  payloadBytes = 0;
  malformed = 0;
  startRecords = 0;
  endRecords = 0;
  requestsAtOnce = 0;
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

  /** The numbers alone; a complete run has been posted and has its end. */
  get summary() {
    const { requests, refused, bytes, bodyBytes, payloadBytes, malformed, startRecords, endRecords, requestsAtOnce } =
      this;
    return {
      requests,
      refused,
      bytes,
      bodyBytes,
      payloadBytes,
      malformed,
      startRecords,
      endRecords,
      requestsAtOnce,
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
