import { checkedOptions } from '../base/options.ts';
import { pathOf } from './call.ts';
import { type CallOptions, callOptionsOf } from './client-options.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import { ifNotGone } from './gone.ts';
import { type ListOptions, listChecks } from './list-options.ts';
import type { Listener, ListenerCreate, ListenerPatch } from './listener.ts';
import type { PageList } from './page.ts';
import { checkRequest } from './request-check.ts';

/** `/v2/listeners`: what deploys into clusters of one's own. */
export class Listeners {
  readonly #api: ControlPlaneApi;

  /** @internal */
  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  list(options: ListOptions = {}): PageList<Listener> {
    const name = 'listeners.list';
    return this.#api.list(() => {
      const page = checkedOptions<ListOptions>(`the options of ${name}`, options, listChecks);
      const path = '/v2/listeners';
      return { page, call: { name, method: 'GET', path, answer: 'object', options: callOptionsOf(page) } };
    });
  }

  async get(listenerId: string, options?: CallOptions): Promise<Listener> {
    const name = 'listeners.get';
    checkRequest(name, { path: { listener_id: listenerId } });
    return this.#api.call({ ...of(listenerId), name, method: 'GET', answer: 'object', options });
  }

  async create(listener: ListenerCreate, options?: CallOptions): Promise<Listener> {
    const name = 'listeners.create';
    checkRequest(name, { body: listener, resource: 'Listener', mode: 'create' });
    return this.#api.call({ name, method: 'POST', path: '/v2/listeners', body: listener, answer: 'object', options });
  }

  async update(listenerId: string, patch: ListenerPatch, options?: CallOptions): Promise<Listener> {
    const name = 'listeners.update';
    checkRequest(name, { path: { listener_id: listenerId }, body: patch, resource: 'Listener', mode: 'patch' });
    return this.#api.call({ ...of(listenerId), name, method: 'PATCH', body: patch, answer: 'object', options });
  }

  async delete(listenerId: string, options?: CallOptions): Promise<void> {
    const name = 'listeners.delete';
    checkRequest(name, { path: { listener_id: listenerId } });
    await this.#api.call({ ...of(listenerId), name, method: 'DELETE', answer: 'any', options }).catch(ifNotGone);
  }
}

function of(listenerId: string): { path: string; told: Record<string, unknown> } {
  return { path: `/v2/listeners${pathOf(listenerId)}`, told: { listener_id: listenerId } };
}
