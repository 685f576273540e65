/**
 * Resources for an `external_container` deployment. CPU is measured in cores, rounded to one decimal. Memory is
 * measured in MB. Fields that start with `redis_` configure the cache, `db_` the database, and `queue_` the queue.
 * Fields that start with `core_` configure the core process in sidecar mode. No size may be negative, no maximum below
 * its minimum, and no limit below its request.
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
  /** Name of an existing service account in the namespace. */
  service_account_name?: string | null;
  image_pull_secrets?: LocalObjectReference[] | null;
  volumes?: Volume[] | null;
  volume_mounts?: VolumeMount[] | null;
  /** Containers that run to completion before the main container starts. */
  init_containers?: Container[] | null;
  /** Containers that run alongside the main container. */
  sidecars?: Container[] | null;
  db_cpu?: number | null;
  db_cpu_limit?: number | null;
  db_memory_mb?: number | null;
  db_memory_limit_mb?: number | null;
  /** Size of the database's storage in GiB. */
  db_storage_gi?: number | null;
  db_max_connections?: number | null;
}

/** A secret with the credentials of an image registry, in the namespace of the deployment. */
export interface LocalObjectReference {
  name: string;
}

/** A Kubernetes volume. */
export interface Volume {
  /** Name of the volume: a DNS label, unique among the volumes. */
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

/** Mounts a Kubernetes volume in a container. */
export interface VolumeMount {
  /** Name of one of the `volumes`. */
  name: string;
  mountPath: string;
  subPath?: string | null;
  mountPropagation?: string | null;
  readOnly?: boolean | null;
  subPathExpr?: string | null;
}

/** A Kubernetes container that runs before the server, or beside it. */
export interface Container {
  /** Name of the container, a DNS label. */
  name: string;
  image: string;
  imagePullPolicy?: 'Always' | 'Never' | 'IfNotPresent' | (string & {}) | null;
  /** Command and its arguments, which run without a shell. */
  command?: string[] | null;
  args?: string[] | null;
  workingDir?: string | null;
  env?: EnvVar[] | null;
  envFrom?: Record<string, unknown>[] | null;
  resources?: ResourceRequirements | null;
  volumeMounts?: VolumeMount[] | null;
  securityContext?: Record<string, unknown> | null;
  /** Restart policy, which only sidecars may have. */
  restartPolicy?: 'Always' | 'OnFailure' | (string & {}) | null;
}

/** An environment variable of a container. */
export interface EnvVar {
  /** Name of the variable, a C identifier. */
  name: string;
  /** @default '' */
  value?: string | null;
  /** Source of the value, allowed only if `value` is empty. */
  valueFrom?: Record<string, unknown> | null;
}

/** Resource requests and limits of a container, in Kubernetes units. */
export interface ResourceRequirements {
  limits?: Record<string, string> | null;
  requests?: Record<string, string> | null;
}
