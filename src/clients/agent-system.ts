import { type AgentService, splitOptions } from './agent-service.ts';
import { oneOf, TRUTH } from './body-rules.ts';
import type { CallOptions } from './client-options.ts';

/** What an agent server is and can. */
export interface AgentServerInfo {
  readonly version: string;
  /** What it has: `assistants`, `crons` and others. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** How an agent server is. */
export class AgentSystem {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async info(options?: CallOptions): Promise<AgentServerInfo> {
    return this.#service.json({ name: 'system.info', method: 'GET', path: '/info', options });
  }

  /** Whether it is up; `checkDb` asks its database as well. A server that is not answers with an error. */
  async ok(options?: CallOptions & { checkDb?: boolean }): Promise<boolean> {
    const name = 'system.ok';
    const { own, options: common } = splitOptions(name, options, { checkDb: TRUTH });
    const query = { check_db: own.checkDb === true ? 1 : undefined };
    const call = { name, method: 'GET', path: '/ok', query, options: common } as const;
    const { ok } = await this.#service.json<{ ok?: unknown }>(call);
    return ok === true;
  }

  /** As text of Prometheus, or as the server has it in JSON. */
  async metrics<Format extends 'prometheus' | 'json' = 'prometheus'>(
    options?: CallOptions & { format?: Format },
  ): Promise<Format extends 'json' ? Record<string, unknown> : string> {
    const name = 'system.metrics';
    const { own, options: common } = splitOptions(name, options, { format: oneOf('prometheus', 'json') });
    const { format = 'prometheus' } = own;
    const call = { name, method: 'GET', path: '/metrics', query: { format }, options: common } as const;
    const answer = format === 'json' ? this.#service.json(call) : this.#service.api.text(call);
    return (await answer) as Format extends 'json' ? Record<string, unknown> : string;
  }
}
