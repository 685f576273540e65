import * as v from 'valibot';
import { isObject } from '../../base/options.ts';
import {
  issuePath,
  listOf,
  oneOf,
  RECORD,
  type Schema,
  strictRequest,
  TRUE_OR_FALSE,
  UUID,
  value,
  whole,
} from '../schema.ts';
import type {
  DeploymentCreate,
  DeploymentPatch,
  DeploymentSource,
  ListenerConfig,
  Secret,
  SecretReference,
  SourceConfig,
  SourceRevisionConfig,
} from './deployment.ts';
import type {
  Container,
  EnvVar,
  LocalObjectReference,
  ResourceRequirements,
  ResourceSpec,
  Volume,
  VolumeMount,
} from './resource-spec.ts';

const TEXT: Schema<string> = v.string('Expected text');
const TEXTS = listOf(TEXT);
const TEXT_MAP: Schema<Record<string, string>> = v.record(v.string(), TEXT, 'Expected an object of texts');
const WHOLE = whole(Number.MIN_SAFE_INTEGER);
const DNS_LABEL: Schema<string> = v.pipe(
  v.string('Expected text'),
  v.regex(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    'Expected a DNS label: up to 63 lower-case letters, digits and hyphens',
  ),
);
const C_IDENTIFIER: Schema<string> = v.pipe(
  v.string('Expected text'),
  v.regex(/^[A-Za-z_]\w*$/, 'Expected a C identifier: letters, digits and underscores, not starting with a digit'),
);
const IMMUTABLE: Schema<never> = v.never('Cannot be changed');

/** The bounds apply before the service rounds to one decimal. */
function cores(least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY): Schema<number> {
  return v.pipe(
    value<number>('a number', Number.isFinite),
    v.minValue(least, `Expected at least ${least}`),
    v.maxValue(most, `Expected at most ${most}`),
  );
}

const CPU = cores(0.1, 8);
const CPU_LIMIT = cores(0.1, 16);
const CORE_CPU = cores(0.1);
const DB_CPU = cores();

const VOLUME = strictRequest<Volume>(
  { name: DNS_LABEL },
  {
    configMap: RECORD,
    secret: RECORD,
    emptyDir: RECORD,
    persistentVolumeClaim: RECORD,
    nfs: RECORD,
    projected: RECORD,
    downwardAPI: RECORD,
    csi: RECORD,
  },
);

const VOLUME_MOUNT = strictRequest<VolumeMount>(
  { name: TEXT, mountPath: TEXT },
  { subPath: TEXT, mountPropagation: TEXT, readOnly: TRUE_OR_FALSE, subPathExpr: TEXT },
);

const ENV_VAR: Schema<EnvVar> = v.pipe(
  strictRequest<EnvVar>({ name: C_IDENTIFIER }, { value: TEXT, valueFrom: RECORD }),
  v.rawCheck(({ dataset, addIssue }) => {
    const { value: text, valueFrom } = (dataset.value ?? {}) as Partial<EnvVar>;
    if (text && isGiven(valueFrom))
      addIssue({ message: 'Cannot be used with a value that is not empty', path: issuePath('valueFrom') });
  }),
);

const CONTAINER = strictRequest<Container>(
  { name: DNS_LABEL, image: TEXT },
  {
    imagePullPolicy: oneOf('Always', 'Never', 'IfNotPresent'),
    command: TEXTS,
    args: TEXTS,
    workingDir: TEXT,
    env: listOf(ENV_VAR),
    envFrom: listOf(RECORD),
    resources: strictRequest<ResourceRequirements>({}, { limits: TEXT_MAP, requests: TEXT_MAP }),
    volumeMounts: listOf(VOLUME_MOUNT),
    securityContext: RECORD,
    restartPolicy: oneOf('Always', 'OnFailure'),
  },
);

const RESOURCE_SPEC: Schema<ResourceSpec> = v.pipe(
  strictRequest<ResourceSpec>(
    {},
    {
      min_scale: WHOLE,
      max_scale: WHOLE,
      cpu: CPU,
      cpu_limit: CPU_LIMIT,
      memory_mb: WHOLE,
      memory_limit_mb: WHOLE,
      queue_min_scale: WHOLE,
      queue_max_scale: WHOLE,
      queue_cpu: CPU,
      queue_cpu_limit: CPU_LIMIT,
      queue_memory_mb: WHOLE,
      queue_memory_limit_mb: WHOLE,
      redis_cpu: CPU,
      redis_cpu_limit: CPU_LIMIT,
      redis_memory_mb: WHOLE,
      redis_memory_limit_mb: WHOLE,
      core_cpu: CORE_CPU,
      core_cpu_limit: CORE_CPU,
      core_memory_mb: WHOLE,
      core_memory_limit_mb: WHOLE,
      labels: TEXT_MAP,
      annotations: TEXT_MAP,
      service_account_name: TEXT,
      image_pull_secrets: listOf(strictRequest<LocalObjectReference>({ name: TEXT }, {})),
      volumes: listOf(VOLUME),
      volume_mounts: listOf(VOLUME_MOUNT),
      init_containers: listOf(CONTAINER),
      sidecars: listOf(CONTAINER),
      db_cpu: DB_CPU,
      db_cpu_limit: DB_CPU,
      db_memory_mb: WHOLE,
      db_memory_limit_mb: WHOLE,
      db_storage_gi: WHOLE,
      db_max_connections: WHOLE,
    },
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    const { volumes, volume_mounts, init_containers, sidecars } = (dataset.value ?? {}) as Record<string, unknown>;
    const names = recordsOf(volumes).map(({ name }) => name);
    for (const [index, name] of names.entries()) {
      if (names.indexOf(name) < index)
        addIssue({ message: 'Another volume has this name', path: issuePath('volumes', index, 'name') });
    }
    const checkMounts = (mounts: unknown, ...place: readonly (string | number)[]): void => {
      for (const [index, { name }] of recordsOf(mounts).entries()) {
        const path = issuePath(...place, index, 'name');
        if (!names.includes(name)) addIssue({ message: 'Expected the name of one of the volumes', path });
      }
    };
    checkMounts(volume_mounts, 'volume_mounts');
    for (const [list, containers] of Object.entries({ init_containers, sidecars }))
      for (const [index, { volumeMounts }] of recordsOf(containers).entries())
        checkMounts(volumeMounts, list, index, 'volumeMounts');
  }),
);

const LISTENER_CONFIG = { k8s_namespace: TEXT };

const SOURCE_CONFIG = {
  integration_id: UUID,
  repo_url: TEXT,
  deployment_type: oneOf('dev_free', 'dev', 'prod', 'dev_zero', 'dev_free_zero'),
  build_on_push: TRUE_OR_FALSE,
  custom_url: TEXT,
  resource_spec: RESOURCE_SPEC,
  listener_id: UUID,
  listener_config: strictRequest<ListenerConfig>({}, LISTENER_CONFIG),
  install_command: TEXT,
  build_command: TEXT,
};

const SOURCE_CONFIG_PATCH = {
  ...SOURCE_CONFIG,
  integration_id: IMMUTABLE,
  repo_url: IMMUTABLE,
  deployment_type: IMMUTABLE,
  listener_id: IMMUTABLE,
  listener_config: strictRequest<ListenerConfig>({}, { k8s_namespace: IMMUTABLE }),
};

const SOURCE_REVISION_CONFIG = strictRequest<SourceRevisionConfig>(
  {},
  {
    repo_ref: TEXT,
    graph_config_path: TEXT,
    image_uri: TEXT,
    source_tarball_path: TEXT,
    repo_commit_sha: v.never('Read-only'),
  },
);

const SHARED = {
  secrets: listOf(strictRequest<Secret>({ name: TEXT, value: TEXT }, {})),
  secret_references: listOf(strictRequest<SecretReference>({ name: TEXT, secret_name: TEXT, secret_key: TEXT }, {})),
  image_version: TEXT,
  deployment_tier: oneOf('SERVERLESS_S', 'SERVERLESS_M', 'SERVERLESS_L', 'DEDICATED_S', 'DEDICATED_M', 'DEDICATED_L'),
};

const GIT = ['git_host'];
const EXTERNAL = ['external_container'];

/** The sources of deployments that may have a field. The platform's own command sets `image_uri` of both container sources. */
const SOURCES_OF: readonly (readonly [part: string, field: string, sources: readonly string[]])[] = [
  ['body', 'secret_references', EXTERNAL],
  ['source_config', 'integration_id', GIT],
  ['source_config', 'repo_url', GIT],
  ['source_config', 'deployment_type', GIT],
  ['source_config', 'build_on_push', GIT],
  ['source_config', 'custom_url', EXTERNAL],
  ['source_config', 'resource_spec', EXTERNAL],
  ['source_config', 'listener_id', EXTERNAL],
  ['source_config', 'listener_config', EXTERNAL],
  ['source_revision_config', 'repo_ref', GIT],
  ['source_revision_config', 'graph_config_path', ['git_host', 'internal_source']],
  ['source_revision_config', 'image_uri', ['external_container', 'internal_container']],
  ['source_revision_config', 'source_tarball_path', ['internal_source']],
];

export const DEPLOYMENT_CREATE: v.GenericSchema = v.pipe(
  strictRequest<DeploymentCreate>(
    {
      name: TEXT,
      source: oneOf('git_host', 'external_container', 'internal_container', 'internal_source', 'internal_template'),
      source_config: strictRequest<SourceConfig>({}, SOURCE_CONFIG),
      source_revision_config: SOURCE_REVISION_CONFIG,
    },
    SHARED,
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    const body = (dataset.value ?? {}) as Record<string, unknown>;
    const source = body.source as DeploymentSource;
    for (const [part, field, sources] of SOURCES_OF) {
      const config = part === 'body' ? body : body[part];
      if (!isObject(config)) continue;
      const path = part === 'body' ? issuePath(field) : issuePath(part, field);
      if (isGiven(config[field]) && !sources.includes(source))
        addIssue({ message: `Only for ${sources.join(' and ')}`, path });
      if (field === 'graph_config_path' && !isGiven(config[field]) && sources.includes(source))
        addIssue({ message: `Field required for ${source}`, path });
    }
    checkTag(body, addIssue);
  }),
  v.transform((deployment) => ({ ...deployment, secrets: deployment.secrets ?? [] })),
);

export const DEPLOYMENT_PATCH: v.GenericSchema = v.pipe(
  strictRequest<DeploymentPatch>(
    {},
    {
      ...SHARED,
      revision_source: oneOf('git_host', 'internal_container', 'internal_source'),
      source_config: strictRequest<SourceConfig>({}, SOURCE_CONFIG_PATCH),
      source_revision_config: SOURCE_REVISION_CONFIG,
    },
  ),
  v.rawCheck(({ dataset, addIssue }) => checkTag((dataset.value ?? {}) as Record<string, unknown>, addIssue)),
);

type AddIssue = (issue: { message: string; path: ReturnType<typeof issuePath> }) => void;

function checkTag({ source_config, source_revision_config }: Record<string, unknown>, addIssue: AddIssue): void {
  if (!isObject(source_config) || !isObject(source_revision_config)) return;
  if (source_config.build_on_push !== true || !String(source_revision_config.repo_ref).startsWith('refs/tags/')) return;
  const message = 'Cannot be true if repo_ref is a tag (refs/tags/…)';
  addIssue({ message, path: issuePath('source_config', 'build_on_push') });
}

function recordsOf(list: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(list) ? list.map((item) => (isObject(item) ? item : {})) : [];
}

function isGiven(given: unknown): boolean {
  return given !== undefined && given !== null;
}
