import * as v from 'valibot';
import { isObject } from '../../config/checker.ts';
import {
  type Breach,
  each,
  listSchema,
  oneOf,
  type Path,
  RECORD,
  rule,
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

const TEXT: Schema<string> = v.string('Expected a string');
// `v.record` accepts arrays.
const TEXT_MAP: Schema<Record<string, string>> = v.pipe(
  value<Record<string, string>>('an object with string values', isObject),
  v.record(v.string(), TEXT),
);
const IMMUTABLE: Schema<never> = v.never('Cannot be changed');
const DNS_LABEL = value<string>(
  'a DNS label: up to 63 lower-case letters, digits and hyphens, without a hyphen at the start or end',
  (text) => typeof text === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text),
);
const C_IDENTIFIER = value<string>(
  'a C identifier: letters, digits and underscores, without a digit at the start',
  (text) => typeof text === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(text),
);

const VOLUME = strictRequest<Volume>(
  { name: DNS_LABEL },
  each(RECORD, 'configMap', 'secret', 'emptyDir', 'persistentVolumeClaim', 'nfs', 'projected', 'downwardAPI', 'csi'),
);

const VOLUME_MOUNT = strictRequest<VolumeMount>(each(TEXT, 'name', 'mountPath'), {
  ...each(TEXT, 'subPath', 'mountPropagation', 'subPathExpr'),
  readOnly: TRUE_OR_FALSE,
});

const ENV_VAR: Schema<EnvVar> = v.pipe(
  strictRequest<EnvVar>({ name: C_IDENTIFIER }, { value: TEXT, valueFrom: RECORD }),
  rule(({ value: text, valueFrom }) =>
    text && isGiven(valueFrom) ? [['Cannot be used with a non-empty value', 'valueFrom']] : [],
  ),
);

const SIDECAR = strictRequest<Container>(
  { name: DNS_LABEL, image: TEXT },
  {
    imagePullPolicy: oneOf('Always', 'Never', 'IfNotPresent'),
    ...each(listSchema(TEXT), 'command', 'args'),
    workingDir: TEXT,
    env: listSchema(ENV_VAR),
    envFrom: listSchema(RECORD),
    resources: strictRequest<ResourceRequirements>({}, each(TEXT_MAP, 'limits', 'requests')),
    volumeMounts: listSchema(VOLUME_MOUNT),
    securityContext: RECORD,
    restartPolicy: oneOf('Always', 'OnFailure'),
  },
);

const INIT_CONTAINER: Schema<Container> = v.pipe(
  SIDECAR,
  rule(({ restartPolicy }) => (isGiven(restartPolicy) ? [['Allowed only for sidecars', 'restartPolicy']] : [])),
);

/** Volumes have unique names, and each mount has the name of a volume. */
const OF_VOLUMES = rule<ResourceSpec>(({ volumes, volume_mounts, ...spec }) => {
  const ofVolumes = namesIn(volumes, 'volumes');
  const names = ofVolumes.map(([name]) => name);
  const ofContainers = ['init_containers', 'sidecars'].flatMap((list) =>
    recordsIn(spec[list]).flatMap(({ volumeMounts }, index) => namesIn(volumeMounts, list, index, 'volumeMounts')),
  );
  const repeated = ofVolumes.filter(([name], index) => names.indexOf(name) < index);
  const unknown = [...namesIn(volume_mounts, 'volume_mounts'), ...ofContainers].filter(
    ([name]) => !names.includes(name),
  );
  return [
    ...repeated.map<Breach>(([, ...path]) => ['Another volume has this name', ...path]),
    ...unknown.map<Breach>(([, ...path]) => ['Expected the name of one of the volumes', ...path]),
  ];
});

/** Returns the names in a list, each with its path. Items without a name are left to the schema of the items. */
function namesIn(list: unknown, ...place: Path): readonly (readonly [name: string, ...path: Path])[] {
  return recordsIn(list).flatMap(({ name }, index) =>
    typeof name === 'string' ? [[name, ...place, index, 'name'] as const] : [],
  );
}

function recordsIn(list: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(list) ? list.map((item) => (isObject(item) ? item : {})) : [];
}

/** Returns a schema for a number of CPU cores. The limits apply to the number before rounding. */
function cores(least: number, most: number = Number.POSITIVE_INFINITY): Schema<number> {
  return v.pipe(
    value<number>('a number', Number.isFinite),
    v.minValue(least, `Expected at least ${least}`),
    v.maxValue(most, `Expected at most ${most}`),
  );
}

/** The precision of the service. Other digits of a number of CPU cores are lost. */
export function roundCores(cores: number): number {
  return Math.round(cores * 10) / 10;
}

// The interface gives no bounds for these fields. No service accepts a negative number, but 0 may have a meaning.
const SIZE = whole(0);
const DB_CPU: Schema<number> = v.pipe(
  cores(0),
  v.check((given) => given <= 0 || roundCores(given) > 0, 'Expected 0, or at least 0.1, because CPU has one decimal'),
);

/** Fields of the queue, each with the field of the server whose value it has by default. */
export const FROM_SERVER: Readonly<Record<string, string>> = {
  queue_min_scale: 'min_scale',
  queue_max_scale: 'max_scale',
  queue_cpu: 'cpu',
  queue_memory_mb: 'memory_mb',
};

/** Pairs of fields of which the first is at most the second. A limit that is absent is never below its request. */
const RANGES: readonly (readonly [low: string, high: string])[] = [
  ['min_scale', 'max_scale'],
  ['queue_min_scale', 'queue_max_scale'],
  ...['', 'queue_', 'redis_', 'core_', 'db_'].flatMap((part) => [
    [`${part}cpu`, `${part}cpu_limit`] as const,
    [`${part}memory_mb`, `${part}memory_limit_mb`] as const,
  ]),
];

const OF_RANGES = rule<ResourceSpec>((spec) => {
  const fieldFor = (name: string): string => (isGiven(spec[name]) ? name : (FROM_SERVER[name] ?? name));
  const sizeOf = (name: string): number => {
    const size = typeof spec[name] === 'number' ? spec[name] : Number.NaN;
    return name.includes('cpu') ? roundCores(size) : size;
  };
  return RANGES.flatMap<Breach>(([low, high]) => {
    const [lower, upper] = [fieldFor(low), fieldFor(high)];
    if (!(sizeOf(lower) > sizeOf(upper))) return [];
    if (upper === high) return [[`Expected at least ${spec[lower]}, the value of ${lower}`, upper]];
    // If neither field is given, the range of their defaults is reported.
    return lower === low ? [[`Expected at most ${spec[upper]}, the value of ${upper}`, lower]] : [];
  });
});

const RESOURCE_SPEC: Schema<ResourceSpec> = v.pipe(
  strictRequest<ResourceSpec>(
    {},
    {
      ...each(cores(0.1, 8), 'cpu', 'queue_cpu', 'redis_cpu'),
      ...each(cores(0.1, 16), 'cpu_limit', 'queue_cpu_limit', 'redis_cpu_limit'),
      ...each(cores(0.1), 'core_cpu', 'core_cpu_limit'),
      ...each(DB_CPU, 'db_cpu', 'db_cpu_limit'),
      ...each(SIZE, 'memory_mb', 'queue_memory_mb', 'redis_memory_mb', 'core_memory_mb', 'db_memory_mb'),
      ...each(SIZE, 'memory_limit_mb', 'queue_memory_limit_mb', 'redis_memory_limit_mb'),
      ...each(SIZE, 'core_memory_limit_mb', 'db_memory_limit_mb', 'db_storage_gi', 'db_max_connections'),
      ...each(SIZE, 'min_scale', 'max_scale', 'queue_min_scale', 'queue_max_scale'),
      ...each(TEXT_MAP, 'labels', 'annotations'),
      init_containers: listSchema(INIT_CONTAINER),
      sidecars: listSchema(SIDECAR),
      service_account_name: TEXT,
      image_pull_secrets: listSchema(strictRequest<LocalObjectReference>({ name: TEXT }, {})),
      volumes: listSchema(VOLUME),
      volume_mounts: listSchema(VOLUME_MOUNT),
    },
  ),
  OF_VOLUMES,
  OF_RANGES,
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
  ...each(IMMUTABLE, 'integration_id', 'repo_url', 'deployment_type', 'listener_id'),
  listener_config: strictRequest<ListenerConfig>({}, { k8s_namespace: IMMUTABLE }),
};

const REVISION_CONFIG = {
  ...each(TEXT, 'repo_ref', 'graph_config_path', 'image_uri', 'source_tarball_path'),
  repo_commit_sha: v.never('Read-only'),
};

const SOURCE_REVISION_CONFIG = strictRequest<SourceRevisionConfig>({}, REVISION_CONFIG);

/** Configurations of which no field is set. */
export const NO_SOURCE_CONFIG: SourceConfig = nullsOf(SOURCE_CONFIG);
export const NO_REVISION_CONFIG: SourceRevisionConfig = nullsOf(REVISION_CONFIG);

const SHARED = {
  secrets: listSchema(strictRequest<Secret>(each(TEXT, 'name', 'value'), {})),
  secret_references: listSchema(strictRequest<SecretReference>(each(TEXT, 'name', 'secret_name', 'secret_key'), {})),
  image_version: TEXT,
  deployment_tier: oneOf('SERVERLESS_S', 'SERVERLESS_M', 'SERVERLESS_L', 'DEDICATED_S', 'DEDICATED_M', 'DEDICATED_L'),
};

const GRAPH_CONFIG_PATH = 'source_revision_config.graph_config_path';
const GIT = ['git_host'];
const EXTERNAL = ['external_container'];

/**
 * Maps each field to the deployment sources that allow it. Both container sources allow `image_uri`, because the
 * platform's own CLI sets the field for both.
 */
const SOURCES_OF: Readonly<Record<string, readonly string[]>> = {
  secret_references: EXTERNAL,
  'source_config.integration_id': GIT,
  'source_config.repo_url': GIT,
  'source_config.deployment_type': GIT,
  'source_config.build_on_push': GIT,
  'source_config.custom_url': EXTERNAL,
  'source_config.resource_spec': EXTERNAL,
  'source_config.listener_id': EXTERNAL,
  'source_config.listener_config': EXTERNAL,
  'source_revision_config.repo_ref': GIT,
  [GRAPH_CONFIG_PATH]: ['git_host', 'internal_source'],
  'source_revision_config.image_uri': ['external_container', 'internal_container'],
  'source_revision_config.source_tarball_path': ['internal_source'],
};

const OF_SOURCE = rule<DeploymentCreate>((body) =>
  Object.entries(SOURCES_OF).flatMap<Breach>(([field, sources]) => {
    const isOfRevision = field.startsWith('source_revision_config.') && isGiven(body.revision_source);
    const source = String(isOfRevision ? body.revision_source : body.source);
    const isAllowed = sources.includes(source);
    if (isGiven(fieldAt(body, field))) return isAllowed ? [] : [[onlyFor(sources), ...field.split('.')]];
    const isMissing = isAllowed && field === GRAPH_CONFIG_PATH && isObject(body.source_revision_config);
    return isMissing ? [[`Field required for ${source}`, ...field.split('.')]] : [];
  }),
);

/** Rejects a patch that is invalid for every source. The source of the deployment is not part of a patch. */
const OF_ONE_SOURCE = rule<DeploymentPatch>((patch) => {
  const given = Object.entries(SOURCES_OF).filter(([field]) => isGiven(fieldAt(patch, field)));
  // A revision with its own source may have fields that the source of the deployment does not allow.
  const partOf = (field: string): string => (isGiven(patch.revision_source) ? (field.split('.')[0] ?? '') : '');
  return given.flatMap<Breach>(([field, sources], index) => {
    const earlier = given.slice(0, index).filter(([other]) => partOf(other) === partOf(field));
    const conflict = earlier.find(([, others]) => !others.some((source) => sources.includes(source)));
    if (conflict === undefined) return [];
    const [other, others] = conflict;
    const message = `${onlyFor(sources)}, but ${other} is only for ${others.join(' and ')}; set only fields of one source`;
    return [[message, ...field.split('.')]];
  });
});

const onlyBranch = <T extends object>(): v.RawCheckAction<T> =>
  rule(({ source_config, source_revision_config }) => {
    if (!isObject(source_config) || !isObject(source_revision_config)) return [];
    const isTag = String(source_revision_config.repo_ref).startsWith('refs/tags/');
    const isPushed = source_config.build_on_push === true;
    const message = 'Cannot be true if repo_ref is a tag (refs/tags/…)';
    return isTag && isPushed ? [[message, 'source_config', 'build_on_push']] : [];
  });

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
  OF_SOURCE,
  onlyBranch(),
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
  OF_ONE_SOURCE,
  onlyBranch(),
);

/** Rules about several fields, for a deployment with the changes of a patch. */
export const DEPLOYMENT_RULES: v.GenericSchema = v.pipe(v.custom<DeploymentCreate>(isObject), OF_SOURCE, onlyBranch());

export function isAllowedFor(source: string, field: string): boolean {
  return SOURCES_OF[field]?.includes(source) === true;
}

function nullsOf(fields: object): object {
  return Object.fromEntries(Object.keys(fields).map((field) => [field, null]));
}

function onlyFor(sources: readonly string[]): string {
  return `Only for ${sources.join(' and ')}`;
}

/** Returns the field at a path such as `source_config.custom_url`. */
function fieldAt(body: unknown, path: string): unknown {
  return path.split('.').reduce((inner, name) => (isObject(inner) ? inner[name] : undefined), body);
}

function isGiven(given: unknown): boolean {
  return given !== undefined && given !== null;
}
