import { defaultLimits, type Limits } from '../../../src/base/limits.ts';
import { delay } from '../../../src/base/timers.ts';
import { DropNotice, type OnDrop } from '../../../src/export/drop-notice.ts';
import { Exporter } from '../../../src/export/exporter.ts';
import { FallbackTransport } from '../../../src/export/fallback-transport.ts';
import { IsolatingTransport } from '../../../src/export/isolating-transport.ts';
import { Ledger } from '../../../src/export/ledger.ts';
import { MultipartTransport } from '../../../src/export/multipart-transport.ts';
import { Outage } from '../../../src/export/outage.ts';
import { Pace } from '../../../src/export/pace.ts';
import { RequestLog } from '../../../src/export/request-log.ts';
import { RetryingTransport } from '../../../src/export/retrying-transport.ts';
import { ServiceInfo } from '../../../src/export/service-info.ts';
import type { Durability } from '../../../src/export/settings.ts';
import { SimpleTransport } from '../../../src/export/simple-transport.ts';
import { openSpool } from '../../../src/export/spool.ts';
import type { SpoolFs } from '../../../src/export/spool-fs.ts';
import type { HttpAnswer, HttpClient, HttpRequest } from '../../../src/http/client.ts';
import { payloadRules } from '../../../src/payload/limits.ts';
import { turns } from '../../support/exporter.ts';
import { MEMORY_SPOOL } from '../../support/memory-fs.ts';
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
    const pace = new Pace(monotonicMs, { ...limits, ...time });
    const outage = new Outage(monotonicMs);
    const ledger = new Ledger();
    const requests = new RequestLog({ ledger, endpoint: endpoint.origin, monotonicMs });
    const multipart = new MultipartTransport(client, info, pace, requests);
    const simple = new SimpleTransport(
      client,
      { inFlight: limits.simpleInFlight, requestsPerSecond: limits.simpleRequestsPerSecond, pace, ...time },
      requests,
    );
    const both = new FallbackTransport(new IsolatingTransport(multipart), new IsolatingTransport(simple), monotonicMs);
    const onDrop: OnDrop = (...drop) => this.isDead || parts.onDrop(...drop);
    return new Exporter({
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
      transport: new RetryingTransport(both, pace, {
        ...limits,
        ageMs: durability === 'memory' ? limits.ageMs : limits.spoolAgeMs,
        endpoint: endpoint.origin,
        outage,
        monotonicMs,
      }),
      info,
      pace,
      outage,
      spool: durability === 'memory' ? undefined : spoolFor(endpoint, limits, parts),
      isWriteAhead: durability === 'write-ahead',
      ledger,
      notice: new DropNotice(onDrop, monotonicMs),
      monotonicMs,
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
