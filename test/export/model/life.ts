import { defaultLimits, type Limits } from '../../../src/base/limits.ts';
import { delay } from '../../../src/base/timers.ts';
import { DropNotice, type OnDrop } from '../../../src/export/drop-notice.ts';
import { Exporter } from '../../../src/export/exporter.ts';
import { IngestClient } from '../../../src/export/ingest-client.ts';
import { Ledger } from '../../../src/export/ledger.ts';
import { SendGate } from '../../../src/export/send-gate.ts';
import { Sender } from '../../../src/export/sender.ts';
import { ServiceInfo } from '../../../src/export/service-info.ts';
import type { Durability } from '../../../src/export/settings.ts';
import { SimpleIngestion } from '../../../src/export/simple-ingestion.ts';
import type { SpoolFs } from '../../../src/export/spool/fs.ts';
import { openSpool } from '../../../src/export/spool/spool.ts';
import type { HttpAnswer, HttpClient, HttpRequest } from '../../../src/http/client.ts';
import { payloadRules } from '../../../src/run/payload-rules.ts';
import { MEMORY_SPOOL } from '../../support/memory-fs.ts';
import { turns } from '../../support/virtual-time.ts';
import { virtualClock } from '../../support/virtual-timers.ts';
import type { ModelService } from './service.ts';

/** Few of everything, so that every limit is met often. */
const LIMITS: Limits = { ...defaultLimits, batchRuns: 3, queueRuns: 12, openRuns: 8 };

/** Short lives, so that runs grow too old. */
export const SHORT_AGES: Partial<Limits> = { openRunAgeMs: 240_000, ageMs: 100_000, spoolAgeMs: 200_000 };

const monotonicMs = (): number => virtualClock.nowMs;

/** One life of the application, with an exporter for each service. */
export interface LifeParts {
  readonly durability: Durability;
  readonly limits: Partial<Limits>;
  readonly services: readonly ModelService[];
  readonly fs: SpoolFs;
  readonly wallMs: () => number;
  readonly onDrop: OnDrop;
}

/** A process: what is left of it once it is dead reaches neither service nor anybody who is told of drops. */
export class Life {
  readonly exporters: readonly Exporter[];
  isDead = false;

  constructor(parts: LifeParts) {
    this.exporters = parts.services.map((service, index) => this.#exporter(service, index, parts));
  }

  #exporter(service: ModelService, index: number, parts: LifeParts): Exporter {
    const { durability } = parts;
    const limits = { ...LIMITS, ...parts.limits };
    const endpoint = new URL(`http://service-${index}`);
    const client = this.#client(service);
    const info = new ServiceInfo(client, { runs: limits.batchRuns, bytes: limits.batchBytes }, monotonicMs);
    const time = { monotonicMs, random: () => 1, delay };
    const ledger = new Ledger();
    const ingest = new IngestClient(client, ledger, endpoint.origin, monotonicMs);
    const simple = new SimpleIngestion({
      ...time,
      client: ingest,
      inFlight: limits.simpleInFlight,
      requestsPerSecond: limits.simpleRequestsPerSecond,
    });
    const onDrop: OnDrop = (...drop) => this.isDead || parts.onDrop(...drop);
    return new Exporter({
      ...time,
      capture: {
        project: 'default',
        hideInputs: false,
        hideOutputs: false,
        payload: payloadRules(limits, undefined),
        attachmentBytes: 0,
        sampling: undefined,
        streamIdleMs: 1,
      },
      limits,
      sender: (heldBytes) => new Sender({ client: ingest, info, simple, monotonicMs, heldBytes }),
      info,
      gate: new SendGate({ ...limits, ...time }),
      endpoint: endpoint.origin,
      spool: durability === 'memory' ? undefined : spoolFor(endpoint, limits, parts),
      isWriteAhead: durability === 'write-ahead',
      ledger,
      notice: new DropNotice(onDrop, monotonicMs),
      opened: () => {},
      closed: async () => {},
    });
  }

  /** The wire between an exporter and its service, without sockets. */
  #client(service: ModelService): HttpClient {
    const send = async (request: HttpRequest): Promise<HttpAnswer> => {
      request.signal?.throwIfAborted();
      await turns(1);
      if (this.isDead) return never();
      const answer = service.answer(request);
      await turns(1);
      if (this.isDead) return never();
      request.signal?.throwIfAborted();
      if (answer === 'silence') await delay(LIMITS.requestTimeoutMs, request.signal ?? new AbortController().signal);
      if (typeof answer === 'string') throw new Error(answer);
      return answer;
    };
    return { send } as unknown as HttpClient;
  }
}

function spoolFor(endpoint: URL, limits: Limits, { fs, wallMs }: LifeParts) {
  return openSpool({
    spoolDir: MEMORY_SPOOL,
    endpoint,
    workspaceId: undefined,
    apiKey: undefined,
    bytesMax: limits.spoolBytes,
    ageMaxMs: limits.spoolAgeMs,
    fs,
    wallMs,
    monotonicMs,
  });
}

function never(): Promise<never> {
  return new Promise(() => {});
}
