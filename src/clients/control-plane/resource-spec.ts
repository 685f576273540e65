import { checkObject } from '../schema.ts';

/**
 * Resources for an `external_container` deployment. CPU is measured in cores, rounded to one decimal. Memory is
 * measured in MB. Fields that start with `redis_` configure the cache, `db_` the database, and `queue_` the queue.
 * Fields that start with `core_` configure the core process in sidecar mode. Call `effectiveResources` to fill in
 * default values.
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

/** Refers to a secret with credentials for an image registry. The secret must be in the same namespace. */
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
  /** Name of the volume to mount. */
  name: string;
  mountPath: string;
  subPath?: string | null;
  mountPropagation?: string | null;
  readOnly?: boolean | null;
  subPathExpr?: string | null;
}

/** A Kubernetes container that runs beside the server. */
export interface Container {
  /** Name of the container, a DNS label. */
  name: string;
  image: string;
  imagePullPolicy?: 'Always' | 'Never' | 'IfNotPresent' | (string & {}) | null;
  /** Command and arguments to run without a shell. */
  command?: string[] | null;
  args?: string[] | null;
  workingDir?: string | null;
  env?: EnvVar[] | null;
  envFrom?: Record<string, unknown>[] | null;
  resources?: ResourceRequirements | null;
  volumeMounts?: VolumeMount[] | null;
  securityContext?: Record<string, unknown> | null;
  /** Restart policy of the container, allowed only for sidecars. */
  restartPolicy?: 'Always' | 'OnFailure' | (string & {}) | null;
}

/** An environment variable of a container. */
export interface EnvVar {
  /** Name of the variable, which must be a C identifier. */
  name: string;
  /** @default '' */
  value?: string | null;
  /** Source of the variable's value, used instead of `value`. */
  valueFrom?: Record<string, unknown> | null;
}

/** Resource requests and limits of a container, in Kubernetes units. */
export interface ResourceRequirements {
  limits?: Record<string, string> | null;
  requests?: Record<string, string> | null;
}

type NumberField = {
  [Field in keyof ResourceSpec]-?: NonNullable<ResourceSpec[Field]> extends number ? Field : never;
}[keyof ResourceSpec];

/**
 * Default of each field, as a multiple (`factor`) of another field (`base`). The default of the base field must come
 * from an earlier row.
 */
const DEFAULTS: readonly (readonly [field: NumberField, base: NumberField, factor: number])[] = [
  ['cpu_limit', 'cpu', 2],
  ['memory_limit_mb', 'memory_mb', 2],
  ['queue_min_scale', 'min_scale', 1],
  ['queue_max_scale', 'max_scale', 1],
  ['queue_cpu', 'cpu', 1],
  ['queue_cpu_limit', 'queue_cpu', 2],
  ['queue_memory_mb', 'memory_mb', 1],
  ['queue_memory_limit_mb', 'queue_memory_mb', 2],
  ['redis_cpu_limit', 'redis_cpu', 2],
  ['redis_memory_limit_mb', 'redis_memory_mb', 1],
  ['core_cpu_limit', 'core_cpu', 2],
  ['core_memory_limit_mb', 'core_memory_mb', 2],
  ['db_cpu_limit', 'db_cpu', 2],
  ['db_memory_limit_mb', 'db_memory_mb', 2],
];

const CPU_FIELDS = ['cpu', 'queue_cpu', 'redis_cpu', 'core_cpu', 'db_cpu'] as const;

/**
 * Returns the resources that the service uses. Missing or null fields get default values. CPU values are rounded to one
 * decimal. If a default depends on another missing field, the field stays missing.
 */
export function effectiveResources(spec: ResourceSpec): ResourceSpec {
  checkObject('effectiveResources', 'spec', spec);
  const effective: ResourceSpec = { ...spec };
  for (const field of CPU_FIELDS) round(effective, field);
  for (const [field, base, factor] of DEFAULTS) {
    const basis = effective[base];
    if (effective[field] === undefined || effective[field] === null) {
      if (typeof basis === 'number') effective[field] = basis * factor;
    }
    if (/cpu/.test(field)) round(effective, field);
  }
  return effective;
}

function round(spec: ResourceSpec, field: NumberField): void {
  const cores = spec[field];
  if (typeof cores === 'number') spec[field] = Math.round(cores * 10) / 10;
}
