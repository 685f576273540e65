/** What deploys into a cluster of one's own. */
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
  /** The name of the cluster. */
  compute_id: string;
  compute_config: ComputeConfig;
}

/** What of a listener is to change. Fields that are left out stay. */
export interface ListenerPatch {
  version?: string | null;
  compute_config?: ComputeConfig | null;
}

export interface ComputeConfig {
  /** Namespaces that it may deploy to. */
  k8s_namespaces?: string[] | null;
}
