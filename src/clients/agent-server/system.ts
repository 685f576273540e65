import type { Check } from '../../base/options.ts';
import { type CallOptions, TRUTH } from '../client-options.ts';
import { endpoints, ONE_IF_TRUE } from '../endpoint.ts';
import type { AgentService } from './agent-service.ts';

/** Version and features of an agent server. */
export interface AgentServerInfo {
  readonly version: string;
  /** Enabled features, for example `assistants` and `crons`. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

const FORMAT: Check = ["'prometheus' or 'json'", (format) => format === 'prometheus' || format === 'json'];

const CALLS = endpoints('system', {
  info: ['GET /info'],
  ok: ['GET /ok', { options: { checkDb: [TRUTH, 'check_db', ONE_IF_TRUE] } }],
  metrics: ['GET /metrics', { options: { format: [FORMAT, 'format'] } }],
});

/** Health and metrics of an agent server. */
export class AgentSystem {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async info(options?: CallOptions): Promise<AgentServerInfo> {
    return this.#service.call(CALLS.info, { options });
  }

  /** Returns whether the server is ready. `checkDb` also checks its database. Rejects if the server does not respond. */
  async ok(options?: CallOptions & { checkDb?: boolean }): Promise<boolean> {
    const { ok } = await this.#service.call<{ ok?: unknown }>(CALLS.ok, { options });
    return ok === true;
  }

  /** Returns metrics as text of Prometheus, or as the JSON of the server. */
  async metrics<Format extends 'prometheus' | 'json' = 'prometheus'>(
    options?: CallOptions & { format?: Format },
  ): Promise<Format extends 'json' ? Record<string, unknown> : string> {
    const format = { format: options?.format ?? 'prometheus' };
    const response = format.format === 'json' ? 'object' : 'text';
    return this.#service.call({ ...CALLS.metrics, response }, { options: { ...options, ...format } as CallOptions });
  }
}
