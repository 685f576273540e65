import type { CallOptions } from '../client-options.ts';
import { endpoints } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { oneOf, strictRequest, TEXT, TEXTS } from '../schema.ts';
import { type ControlPlaneApi, LIST_OPTIONS, type ListOptions } from './control-plane-api.ts';

/** A program that deploys to your own cluster. */
export interface Listener {
  id: string;
  version?: string | null;
  compute_type: 'k8s' | (string & {});
  compute_id: string;
  compute_config: ComputeConfig;
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  updated_at: string;
  readonly [field: string]: unknown;
}

export interface ListenerCreate {
  version?: string | null;
  compute_type: 'k8s';
  /** Name of the cluster. */
  compute_id: string;
  compute_config: ComputeConfig;
}

/** Changes to a listener. Missing fields do not change. */
export interface ListenerPatch {
  version?: string | null;
  compute_config?: ComputeConfig | null;
}

export interface ComputeConfig {
  /** Namespaces to which the listener can deploy. */
  k8s_namespaces?: string[] | null;
}

const COMPUTE_CONFIG = strictRequest<ComputeConfig>({}, { k8s_namespaces: TEXTS });

const LISTENER_CREATE = strictRequest<ListenerCreate>(
  { compute_type: oneOf('k8s'), compute_id: TEXT, compute_config: COMPUTE_CONFIG },
  { version: TEXT },
);

const LISTENER_PATCH = strictRequest<ListenerPatch>({}, { version: TEXT, compute_config: COMPUTE_CONFIG });

const CALLS = endpoints('listeners', {
  list: ['GET /v2/listeners', { options: LIST_OPTIONS }],
  get: ['GET /v2/listeners/{listener_id:uuid}'],
  create: ['POST /v2/listeners', { body: LISTENER_CREATE }],
  update: ['PATCH /v2/listeners/{listener_id:uuid}', { body: LISTENER_PATCH }],
  delete: ['DELETE /v2/listeners/{listener_id:uuid}', { response: 'none' }],
});

/** `/v2/listeners`: programs that deploy to your own clusters. */
export class Listeners {
  readonly #api: ControlPlaneApi;

  /** @internal */
  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  list(options?: ListOptions): PageList<Listener> {
    return this.#api.list(CALLS.list, { options });
  }

  async get(listenerId: string, options?: CallOptions): Promise<Listener> {
    return this.#api.call(CALLS.get, { ids: [listenerId], options });
  }

  async create(listener: ListenerCreate, options?: CallOptions): Promise<Listener> {
    return this.#api.call(CALLS.create, { body: listener, options });
  }

  async update(listenerId: string, patch: ListenerPatch, options?: CallOptions): Promise<Listener> {
    return this.#api.call(CALLS.update, { ids: [listenerId], body: patch, options });
  }

  async delete(listenerId: string, options?: CallOptions): Promise<void> {
    return this.#api.call(CALLS.delete, { ids: [listenerId], options });
  }
}
