/**
 * Resources for an `external_container` deployment. CPU is measured in cores, rounded to one decimal. Memory is
 * measured in MB. Fields that start with `redis_` configure the cache, `db_` the database, and `queue_` the queue.
 * Fields that start with `core_` configure the core process in sidecar mode.
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
  image_pull_secrets?: KubernetesObject[] | null;
  volumes?: KubernetesObject[] | null;
  volume_mounts?: KubernetesObject[] | null;
  /** Containers that run to completion before the main container starts. */
  init_containers?: KubernetesObject[] | null;
  /** Containers that run alongside the main container. */
  sidecars?: KubernetesObject[] | null;
  db_cpu?: number | null;
  db_cpu_limit?: number | null;
  db_memory_mb?: number | null;
  db_memory_limit_mb?: number | null;
  /** Size of the database's storage in GiB. */
  db_storage_gi?: number | null;
  db_max_connections?: number | null;
}

/** An object of the Kubernetes API, for example a `Container`. The service validates it. */
export type KubernetesObject = Readonly<Record<string, unknown>>;
