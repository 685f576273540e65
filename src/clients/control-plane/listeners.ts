import type { CallOptions } from '../client-options.ts';
import { endpoints, type Table } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { oneOf, strictRequest, TEXT, TEXTS } from '../schema.ts';
import { LIST_OPTIONS, type ListOptions } from './control-plane-api.ts';

/** A program in your own Kubernetes cluster that deploys agent servers to the cluster. */
export interface Listener {
  id: string;
  version?: string | null;
  compute_type: 'k8s' | (string & {});
  compute_id: string;
  compute_config: ComputeConfig;
  /** ISO 8601 timestamp. */
  created_at: string;
  /** ISO 8601 timestamp. */
  updated_at: string;
  readonly [field: string]: unknown;
}

/** A request to create a listener. */
export interface ListenerCreate {
  version?: string | null;
  compute_type: 'k8s';
  /** Name that identifies the cluster. */
  compute_id: string;
  compute_config: ComputeConfig;
}

/** Fields of a listener to change. Omitted fields keep their values. */
export interface ListenerPatch {
  version?: string | null;
  compute_config?: ComputeConfig | null;
}

/** Configuration of a listener's cluster. */
export interface ComputeConfig {
  /** Kubernetes namespaces to which the listener can deploy. */
  k8s_namespaces?: string[] | null;
}

/** Calls for the endpoints under `/v2/listeners`. A listener deploys agent servers to your own Kubernetes cluster. */
export interface Listeners {
  list(options?: ListOptions): PageList<Listener>;
  get(listenerId: string, options?: CallOptions): Promise<Listener>;
  create(listener: ListenerCreate, options?: CallOptions): Promise<Listener>;
  update(listenerId: string, patch: ListenerPatch, options?: CallOptions): Promise<Listener>;
  delete(listenerId: string, options?: CallOptions): Promise<void>;
}

const COMPUTE_CONFIG = strictRequest<ComputeConfig>({}, { k8s_namespaces: TEXTS });

const LISTENER_CREATE = strictRequest<ListenerCreate>(
  { compute_type: oneOf('k8s'), compute_id: TEXT, compute_config: COMPUTE_CONFIG },
  { version: TEXT },
);

const LISTENER_PATCH = strictRequest<ListenerPatch>({}, { version: TEXT, compute_config: COMPUTE_CONFIG });

export const LISTENERS: Table<Listeners> = endpoints('listeners', {
  list: ['GET /v2/listeners', { response: 'pages', options: LIST_OPTIONS }],
  get: ['GET /v2/listeners/{listener_id:uuid}'],
  create: ['POST /v2/listeners', { body: LISTENER_CREATE }],
  update: ['PATCH /v2/listeners/{listener_id:uuid}', { body: LISTENER_PATCH }],
  delete: ['DELETE /v2/listeners/{listener_id:uuid}', { response: 'none' }],
});
