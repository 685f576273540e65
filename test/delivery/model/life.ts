// Loaded ahead, because the first request would load it outside of the virtual clock.
import '#src/otel/otlp/traces.ts';

import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Limits, Tuning } from '#src/config/limits.ts';
import { type ConfigureOptions, type Durability, resolveSettings, type Settings } from '#src/config/options.ts';
import type { Protocol } from '#src/config/otlp.ts';
import { exporterFor } from '#src/delivery/create-exporter.ts';
import { Ledger } from '#src/delivery/ledger.ts';
import { forgetAtEnd } from '#src/delivery/process-end.ts';
import type { SpoolFs } from '#src/delivery/spool/fs.ts';
import { delay } from '#src/platform/timers.ts';
import { MEMORY_SPOOL } from '../../support/memory-fs.ts';
import { turns } from '../../support/virtual-time.ts';
import { virtualClock } from '../../support/virtual-timers.ts';
import type { Answer, WireRequest } from './service.ts';

/** Low limits, so that each one is reached often. */
const LIMITS: Partial<Limits & Tuning> = { batchRuns: 3, queueRuns: 12, openRuns: 8 };

/** Short age limits, so that runs grow too old. */
export const SHORT_AGES: Partial<Limits & Tuning> = { openRunAgeMs: 240_000, ageMs: 100_000, spoolAgeMs: 200_000 };

type Exporter = ReturnType<typeof exporterFor>;

export interface Service {
  answer(request: WireRequest): Answer | Promise<Answer>;
}

/** One application process, with an exporter for each service. */
export interface LifeParts {
  readonly durability: Durability;
  /** @default 'runs' */
  readonly protocol?: Protocol;
  readonly limits: Partial<Limits & Tuning>;
  readonly services: readonly Service[];
  readonly fs: SpoolFs;
  /** @default 1 each time */
  readonly random?: () => number;
  readonly wallMs: () => number;
  readonly onDrop: NonNullable<ConfigureOptions['onDrop']>;
}

/** A process. Once it is dead, nothing from it reaches a service or `onDrop`. */
export class Life {
  readonly exporters: readonly Exporter[];
  #isDead = false;

  constructor(parts: LifeParts) {
    this.exporters = parts.services.map((service, index) => this.#exporter(service, index, parts));
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Drops the exporters, so that many processes fit into memory. */
  die(): void {
    this.#isDead = true;
    for (const exporter of this.exporters) forgetAtEnd(exporter);
  }

  #exporter(service: Service, index: number, parts: LifeParts): Exporter {
    const given = resolveSettings(
      {
        endpoint: `http://service-${index}`,
        protocol: parts.protocol ?? 'runs',
        durability: parts.durability,
        spoolDir: MEMORY_SPOOL,
        dispatcher: this.#dispatcher(service),
        onDrop: (...drop) => this.#isDead || parts.onDrop(...drop),
      },
      false,
    ) as Settings;
    const limits = { ...given.limits, ...LIMITS, ...parts.limits };
    // With every protocol the same, as with `runspan spool send --from`.
    const spoolDestination = String(index).repeat(32);
    return exporterFor({ ...given, limits, spoolDestination }, new Ledger(), () => {}, {
      monotonicMs: () => virtualClock.nowMs,
      random: parts.random ?? (() => 1),
      delay,
      fs: parts.fs,
      wallMs: parts.wallMs,
    });
  }

  /** The connection between an exporter and its service, without sockets. */
  #dispatcher(service: Service): Dispatcher {
    const request = async ({ method, path, headers, body }: Dispatcher.RequestOptions): Promise<unknown> => {
      const bytes = await bytesOf(body);
      await turns(1);
      if (this.#isDead) return never();
      const answer = await service.answer({ method, path, headers: headers as Record<string, string>, body: bytes });
      await turns(1);
      // The exporter has a deadline for missing responses.
      if (this.#isDead || answer === 'silence') return never();
      if (answer === 'reset') throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      return {
        statusCode: answer.status,
        headers: answer.headers,
        body: Readable.from([Buffer.from(answer.body ?? '{}')]),
      };
    };
    return { request } as unknown as Dispatcher;
  }
}

async function bytesOf(body: unknown): Promise<Buffer> {
  if (body === null || body === undefined) return Buffer.alloc(0);
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body as string);
  const chunks: Buffer[] = [];
  for await (const chunk of body as Readable) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

function never(): Promise<never> {
  return new Promise(() => {});
}
