/**
 * Resources of an `external_container` deployment. The service rounds CPU, in cores, to one decimal. Memory is in MB.
 * `redis_*` configures the cache, `db_*` the database, `queue_*` the queue, `core_*` the core process in sidecar mode.
 * `effectiveResources` returns the defaults of missing fields.
 */
export interface ResourceSpec {
  min_scale?: number | null;
  max_scale?: number | null;
  cpu?: number | null;
  cpu_limit?: number | null;
  memory_mb?: number | null;
  memory_limit_mb?: number | null;
  queue_min_scale?: number | null;
  queue_max_scale?: number | null;
  queue_cpu?: number | null;
  queue_cpu_limit?: number | null;
  queue_memory_mb?: number | null;
  queue_memory_limit_mb?: number | null;
  redis_cpu?: number | null;
  redis_cpu_limit?: number | null;
  redis_memory_mb?: number | null;
  redis_memory_limit_mb?: number | null;
  core_cpu?: number | null;
  core_cpu_limit?: number | null;
  core_memory_mb?: number | null;
  core_memory_limit_mb?: number | null;
  labels?: Record<string, string> | null;
  annotations?: Record<string, string> | null;
  /** Must exist in the namespace. */
  service_account_name?: string | null;
  image_pull_secrets?: LocalObjectReference[] | null;
  volumes?: Volume[] | null;
  volume_mounts?: VolumeMount[] | null;
  /** Run to completion before the main container starts. */
  init_containers?: Container[] | null;
  /** Run alongside the main container. */
  sidecars?: Container[] | null;
  db_cpu?: number | null;
  db_cpu_limit?: number | null;
  db_memory_mb?: number | null;
  db_memory_limit_mb?: number | null;
  /** In GiB. */
  db_storage_gi?: number | null;
  db_max_connections?: number | null;
}

/** A secret of the namespace with the credentials of an image registry. */
export interface LocalObjectReference {
  name: string;
}

export interface Volume {
  /** A DNS label, unique among the volumes. */
  name: string;
  configMap?: Record<string, unknown> | null;
  secret?: Record<string, unknown> | null;
  emptyDir?: Record<string, unknown> | null;
  persistentVolumeClaim?: Record<string, unknown> | null;
  nfs?: Record<string, unknown> | null;
  projected?: Record<string, unknown> | null;
  downwardAPI?: Record<string, unknown> | null;
  csi?: Record<string, unknown> | null;
}

export interface VolumeMount {
  /** Name of a volume. */
  name: string;
  mountPath: string;
  subPath?: string | null;
  mountPropagation?: string | null;
  readOnly?: boolean | null;
  subPathExpr?: string | null;
}

export interface Container {
  /** A DNS label. */
  name: string;
  image: string;
  imagePullPolicy?: 'Always' | 'Never' | 'IfNotPresent' | (string & {}) | null;
  /** Not run in a shell. */
  command?: string[] | null;
  args?: string[] | null;
  workingDir?: string | null;
  env?: EnvVar[] | null;
  envFrom?: Record<string, unknown>[] | null;
  resources?: ResourceRequirements | null;
  volumeMounts?: VolumeMount[] | null;
  securityContext?: Record<string, unknown> | null;
  /** Only for sidecars. */
  restartPolicy?: 'Always' | 'OnFailure' | (string & {}) | null;
}

export interface EnvVar {
  /** A C identifier. */
  name: string;
  /** @default '' */
  value?: string | null;
  /** Replaces `value`. */
  valueFrom?: Record<string, unknown> | null;
}

export interface ResourceRequirements {
  limits?: Record<string, string> | null;
  requests?: Record<string, string> | null;
}
