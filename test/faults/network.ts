import type { Socket } from 'node:net';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { createExporter, type Exporter } from '../../src/index.ts';
import { temporaryFolder } from '../support/folders.ts';
import { gate } from '../support/gate.ts';
import { isOldKey, type NetworkFault } from './network-faults.ts';
import { LAST_ANSWER, type RawRequest, RawServer, type Saboteur } from './raw-server.ts';

const LIMITS = {
  requestsInFlight: 1,
  batchRuns: 4,
  lingerMs: 1,
  retryDelayMs: 5,
  retryDelayMaxMs: 20,
};

/** What stays silent does so for good: nothing has to be waited for. */
const SHORT_TIMEOUTS = { requestTimeoutMs: 500, connectTimeoutMs: 500 };

/** Called with each line of diagnostics. */
const listeners = new Set<(line: string) => void>();

/** Where a fault happens: at which request of ingestion, or when the client asks what the service is like. */
export type FaultPlace = number | 'info';

/** A service with one fault in it, and its clients. */
export class Network implements Saboteur {
  readonly server: RawServer = new RawServer(this);
  readonly exporters: Exporter[] = [];
  /** How often the fault has happened. */
  reached = 0;
  readonly #fault: NetworkFault | undefined;
  readonly #place: FaultPlace;
  readonly #folder = temporaryFolder();
  readonly #noticed = gate();
  #isNoticed = false;

  constructor(fault: NetworkFault | undefined, place: FaultPlace) {
    this.#fault = fault;
    this.#place = place;
    diagnostics.setLog((_, line) => {
      for (const listener of listeners) listener(line);
    });
  }

  /** Resolves when the client has told of the fault. */
  get noticed(): Promise<void> {
    return this.#noticed;
  }

  async open(): Promise<void> {
    listeners.add(this.#hear);
    await this.server.listen();
    if (this.#isRefusing && this.#place === 0) this.server.refuse();
  }

  connect(apiKey: string): Exporter {
    const exporter = createExporter({
      endpoint: this.server.url,
      apiKey,
      workspaceId: 'workspace',
      durability: this.#fault?.kind === 'key' ? 'spill' : 'memory',
      spoolDir: this.#folder.path,
      limits: this.#fault === undefined ? LIMITS : { ...LIMITS, ...SHORT_TIMEOUTS },
    });
    this.exporters.push(exporter);
    return exporter;
  }

  async close(): Promise<void> {
    await Promise.all(this.exporters.map((exporter) => exporter.close({ timeoutMs: 0 })));
    listeners.delete(this.#hear);
    await this.server.close();
    this.#folder.remove();
  }

  connected(socket: Socket): boolean {
    const fault = this.#fault;
    if (fault?.kind !== 'connection' || this.#isNoticed || this.server.requests !== this.#place) return false;
    this.reached++;
    fault.act?.(socket);
    return true;
  }

  received(socket: Socket, bytes: number, isIngestion: boolean): boolean {
    const fault = this.#fault;
    if (fault?.kind !== 'request' || this.reached > 0 || !this.#isThere(isIngestion) || bytes < fault.bytes)
      return false;
    this.reached++;
    socket.resetAndDestroy();
    return true;
  }

  whole(socket: Socket, request: RawRequest, isIngestion: boolean): 'as usual' | 'answered' | 'failed' {
    const fault = this.#fault;
    if (fault?.kind === 'answer') return this.#sabotage(socket, isIngestion);
    if (fault?.kind === 'key' && this.server.requests >= Number(this.#place) && isOldKey(request)) {
      this.reached++;
      socket.write('HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}');
      return 'failed';
    }
    if (fault?.kind !== 'connection' || !isIngestion) return 'as usual';
    // Each request needs a connection of its own.
    if (this.#isRefusing && this.server.requests === Number(this.#place) - 1) this.server.refuse();
    socket.end(LAST_ANSWER);
    return 'answered';
  }

  #sabotage(socket: Socket, isIngestion: boolean): 'as usual' | 'answered' | 'failed' {
    const fault = this.#fault;
    if (fault?.kind !== 'answer' || !this.#isThere(isIngestion)) return 'as usual';
    if (this.reached > 0 && fault.isLasting !== true) return 'as usual';
    this.reached++;
    fault.act(socket);
    return fault.isAnswer === true ? 'answered' : 'failed';
  }

  /** Whether this is where the fault belongs, or comes after it. */
  #isThere(isIngestion: boolean): boolean {
    if (this.#place === 'info') return !isIngestion;
    return isIngestion && this.server.requests >= this.#place;
  }

  get #isRefusing(): boolean {
    return this.#fault?.kind === 'connection' && this.#fault.act === undefined;
  }

  readonly #hear = (line: string): void => {
    if (this.#isNoticed || !line.includes(`delivery to ${this.server.url} failed`)) return;
    this.#isNoticed = true;
    if (this.#isRefusing) {
      if (line.includes('ECONNREFUSED')) this.reached++;
      void this.server.listen();
    }
    this.#noticed.open();
  };
}
