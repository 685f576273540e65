import type { DeploymentSource } from './deployment.ts';

/**
 * What a field of a resource is, as the interface's tables tell. All that a client checks of requests is driven from here.
 */
export interface Field {
  /** `object` is free-form, `map` one of names and texts; a name in capitals is another resource. */
  readonly type: 'string' | 'uuid' | 'date-time' | 'boolean' | 'integer' | 'number' | 'object' | 'map' | ResourceName;
  /** A list of these. */
  readonly list?: true;
  /** It is in each answer, and has to be in a request that creates, unless it is read-only or has a default there. */
  readonly required?: true;
  readonly nullable?: true;
  readonly values?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** To which the service rounds. */
  readonly decimals?: 1;
  readonly form?: 'DNS label' | 'C identifier';
  /** What holds where the field is left out: a value, or so many times another field. */
  readonly default?: string | boolean | readonly [] | DefaultOf;
  /** A request cannot set it. */
  readonly readOnly?: true;
  /** A PATCH cannot change it. */
  readonly immutable?: true;
  /** It is in a PATCH alone. */
  readonly patchOnly?: true;
  /** Deployments of these sources alone have it. */
  readonly sources?: readonly DeploymentSource[];
  /** On create deployments of these sources have to have it. */
  readonly requiredFor?: readonly DeploymentSource[];
  /** Where a PATCH sets it, it makes a new revision. */
  readonly makesRevision?: true;
}

/** A default that goes by another field, or by what holds for that. */
export interface DefaultOf {
  readonly field: string;
  readonly times: number;
}

export type Fields = Readonly<Record<string, Field>>;

export type ResourceName =
  | 'Deployment'
  | 'SourceConfig'
  | 'ListenerConfig'
  | 'SourceRevisionConfig'
  | 'Secret'
  | 'SecretReference'
  | 'ResourceSpec'
  | 'LocalObjectReference'
  | 'Volume'
  | 'VolumeMount'
  | 'Container'
  | 'EnvVar'
  | 'ResourceRequirements'
  | 'Revision'
  | 'Listener'
  | 'ComputeConfig';

const CPU = { type: 'number', nullable: true, min: 0.1, max: 8, decimals: 1 } as const;
const CPU_LIMIT = { ...CPU, max: 16 } as const;
const CORE_CPU = { type: 'number', nullable: true, min: 0.1, decimals: 1 } as const;
const DB_CPU = { type: 'number', nullable: true, decimals: 1 } as const;
const WHOLE = { type: 'integer', nullable: true } as const;
const FREE = { type: 'object', nullable: true } as const;
const TEXT = { type: 'string', nullable: true } as const;
const TEXTS = { type: 'string', list: true, nullable: true } as const;
const MAP = { type: 'map', nullable: true } as const;
const FOR_GIT = ['git_host'] as const;
const FOR_EXTERNAL = ['external_container'] as const;

/** Each field of each resource. The service's additions to the interface are marked. */
export const controlPlaneFields: Readonly<Record<ResourceName, Fields>> = {
  Deployment: {
    name: { type: 'string', required: true, immutable: true },
    source: {
      type: 'string',
      required: true,
      immutable: true,
      values: ['git_host', 'external_container', 'internal_container', 'internal_source', 'internal_template'],
    },
    source_config: { type: 'SourceConfig', required: true },
    source_revision_config: { type: 'SourceRevisionConfig', required: true },
    secrets: { type: 'Secret', list: true, required: true, default: [], makesRevision: true },
    secret_references: { type: 'SecretReference', list: true, nullable: true, sources: FOR_EXTERNAL },
    id: { type: 'uuid', required: true, readOnly: true },
    tenant_id: { type: 'uuid', required: true, readOnly: true },
    created_at: { type: 'date-time', required: true, readOnly: true },
    updated_at: { type: 'date-time', required: true, readOnly: true },
    status: {
      type: 'string',
      required: true,
      readOnly: true,
      values: ['AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE', 'UNKNOWN'],
    },
    latest_revision_id: { type: 'uuid', required: true, nullable: true, readOnly: true },
    active_revision_id: { type: 'uuid', required: true, nullable: true, readOnly: true },
    image_version: TEXT,
    is_managed_deep_agent: { type: 'boolean', readOnly: true, default: false },
    deployment_tier: {
      type: 'string',
      nullable: true,
      values: ['SERVERLESS_S', 'SERVERLESS_M', 'SERVERLESS_L', 'DEDICATED_S', 'DEDICATED_M', 'DEDICATED_L'],
    },
    // Not in the interface: by it a deployment gets a revision of another source.
    revision_source: {
      type: 'string',
      nullable: true,
      patchOnly: true,
      values: ['git_host', 'internal_container', 'internal_source'],
    },
  },
  SourceConfig: {
    integration_id: { type: 'uuid', nullable: true, immutable: true, sources: FOR_GIT },
    repo_url: { type: 'string', nullable: true, immutable: true, sources: FOR_GIT },
    deployment_type: {
      type: 'string',
      nullable: true,
      immutable: true,
      sources: FOR_GIT,
      values: ['dev_free', 'dev', 'prod', 'dev_zero', 'dev_free_zero'],
    },
    build_on_push: { type: 'boolean', nullable: true, sources: FOR_GIT },
    custom_url: { type: 'string', nullable: true, sources: FOR_EXTERNAL },
    resource_spec: { type: 'ResourceSpec', nullable: true, sources: FOR_EXTERNAL, makesRevision: true },
    listener_id: { type: 'uuid', nullable: true, immutable: true, sources: FOR_EXTERNAL },
    listener_config: { type: 'ListenerConfig', nullable: true, sources: FOR_EXTERNAL },
    install_command: TEXT,
    build_command: TEXT,
  },
  ListenerConfig: {
    k8s_namespace: { type: 'string', nullable: true, immutable: true },
  },
  SourceRevisionConfig: {
    repo_ref: { type: 'string', nullable: true, sources: FOR_GIT, makesRevision: true },
    graph_config_path: {
      type: 'string',
      nullable: true,
      sources: ['git_host', 'internal_source'],
      requiredFor: ['git_host', 'internal_source'],
      makesRevision: true,
    },
    // The command line of the platform pushes images of `internal_container` deployments, and then sets it too.
    image_uri: {
      type: 'string',
      nullable: true,
      sources: ['external_container', 'internal_container'],
      makesRevision: true,
    },
    source_tarball_path: { type: 'string', nullable: true, sources: ['internal_source'], makesRevision: true },
    repo_commit_sha: { type: 'string', nullable: true, readOnly: true, sources: FOR_GIT },
  },
  Secret: {
    name: { type: 'string', required: true },
    value: { type: 'string', required: true },
  },
  SecretReference: {
    name: { type: 'string', required: true },
    secret_name: { type: 'string', required: true },
    secret_key: { type: 'string', required: true },
  },
  ResourceSpec: {
    min_scale: WHOLE,
    max_scale: WHOLE,
    cpu: CPU,
    cpu_limit: { ...CPU_LIMIT, default: { field: 'cpu', times: 2 } },
    memory_mb: WHOLE,
    memory_limit_mb: { ...WHOLE, default: { field: 'memory_mb', times: 2 } },
    queue_min_scale: { ...WHOLE, default: { field: 'min_scale', times: 1 } },
    queue_max_scale: { ...WHOLE, default: { field: 'max_scale', times: 1 } },
    queue_cpu: { ...CPU, default: { field: 'cpu', times: 1 } },
    queue_cpu_limit: { ...CPU_LIMIT, default: { field: 'queue_cpu', times: 2 } },
    queue_memory_mb: { ...WHOLE, default: { field: 'memory_mb', times: 1 } },
    queue_memory_limit_mb: { ...WHOLE, default: { field: 'queue_memory_mb', times: 2 } },
    redis_cpu: CPU,
    redis_cpu_limit: { ...CPU_LIMIT, default: { field: 'redis_cpu', times: 2 } },
    redis_memory_mb: WHOLE,
    redis_memory_limit_mb: { ...WHOLE, default: { field: 'redis_memory_mb', times: 1 } },
    core_cpu: CORE_CPU,
    core_cpu_limit: { ...CORE_CPU, default: { field: 'core_cpu', times: 2 } },
    core_memory_mb: WHOLE,
    core_memory_limit_mb: { ...WHOLE, default: { field: 'core_memory_mb', times: 2 } },
    labels: MAP,
    annotations: MAP,
    service_account_name: TEXT,
    image_pull_secrets: { type: 'LocalObjectReference', list: true, nullable: true },
    volumes: { type: 'Volume', list: true, nullable: true },
    volume_mounts: { type: 'VolumeMount', list: true, nullable: true },
    init_containers: { type: 'Container', list: true, nullable: true },
    sidecars: { type: 'Container', list: true, nullable: true },
    db_cpu: DB_CPU,
    db_cpu_limit: { ...DB_CPU, default: { field: 'db_cpu', times: 2 } },
    db_memory_mb: WHOLE,
    db_memory_limit_mb: { ...WHOLE, default: { field: 'db_memory_mb', times: 2 } },
    db_storage_gi: WHOLE,
    db_max_connections: WHOLE,
  },
  LocalObjectReference: {
    name: { type: 'string', required: true },
  },
  Volume: {
    name: { type: 'string', required: true, form: 'DNS label' },
    configMap: FREE,
    secret: FREE,
    emptyDir: FREE,
    persistentVolumeClaim: FREE,
    nfs: FREE,
    projected: FREE,
    downwardAPI: FREE,
    csi: FREE,
  },
  VolumeMount: {
    name: { type: 'string', required: true },
    mountPath: { type: 'string', required: true },
    subPath: TEXT,
    mountPropagation: TEXT,
    readOnly: { type: 'boolean', nullable: true },
    subPathExpr: TEXT,
  },
  Container: {
    name: { type: 'string', required: true, form: 'DNS label' },
    image: { type: 'string', required: true },
    imagePullPolicy: { type: 'string', nullable: true, values: ['Always', 'Never', 'IfNotPresent'] },
    command: TEXTS,
    args: TEXTS,
    workingDir: TEXT,
    env: { type: 'EnvVar', list: true, nullable: true },
    envFrom: { type: 'object', list: true, nullable: true },
    resources: { type: 'ResourceRequirements', nullable: true },
    volumeMounts: { type: 'VolumeMount', list: true, nullable: true },
    securityContext: FREE,
    restartPolicy: { type: 'string', nullable: true, values: ['Always', 'OnFailure'] },
  },
  EnvVar: {
    name: { type: 'string', required: true, form: 'C identifier' },
    value: { type: 'string', nullable: true, default: '' },
    valueFrom: FREE,
  },
  ResourceRequirements: {
    limits: MAP,
    requests: MAP,
  },
  // Of a revision the interface names id, status and configuration; the rest, and all of the listener, is the service's.
  Revision: {
    id: { type: 'uuid', required: true, readOnly: true },
    created_at: { type: 'date-time', readOnly: true },
    updated_at: { type: 'date-time', readOnly: true },
    status: {
      type: 'string',
      required: true,
      readOnly: true,
      values: [
        'CREATING',
        'QUEUED',
        'AWAITING_BUILD',
        'BUILDING',
        'AWAITING_DEPLOY',
        'DEPLOYING',
        'DEPLOYED',
        'CREATE_FAILED',
        'BUILD_FAILED',
        'DEPLOY_FAILED',
        'SKIPPED',
        'INTERRUPTED',
        'UNKNOWN',
      ],
    },
    source: {
      type: 'string',
      readOnly: true,
      values: ['git_host', 'external_container', 'internal_container', 'internal_source', 'internal_template'],
    },
    source_revision_config: { type: 'SourceRevisionConfig', required: true, readOnly: true },
  },
  Listener: {
    id: { type: 'uuid', required: true, readOnly: true },
    version: TEXT,
    compute_type: { type: 'string', required: true, immutable: true, values: ['k8s'] },
    compute_id: { type: 'string', required: true, immutable: true },
    compute_config: { type: 'ComputeConfig', required: true },
    created_at: { type: 'date-time', required: true, readOnly: true },
    updated_at: { type: 'date-time', required: true, readOnly: true },
  },
  ComputeConfig: {
    k8s_namespaces: TEXTS,
  },
};
