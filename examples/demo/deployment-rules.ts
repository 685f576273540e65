/** The rules of the interface for requests that create or change a deployment. */
import { type Fields, type Rule, UNKNOWN, withField } from './rule.ts';

export const CREATE = 'POST /v2/deployments';
export const PATCH = 'PATCH /v2/deployments/{deployment_id}';

const SPEC = 'source_config.resource_spec';
const REPO_REF = 'source_revision_config.repo_ref';
const TAG = 'refs/tags/v1';
const GRAPH = 'source_revision_config.graph_config_path';

const SHARED: Fields = { name: 'shop', source_config: {}, secrets: [{ name: 'KEY', value: 'value' }] };
const BUILT: Fields = { ...SHARED, source_revision_config: { graph_config_path: 'graph.json' } };
const READY: Fields = { ...SHARED, source_revision_config: {} };
const MOUNTS = [{ name: 'data', mountPath: '/data' }];
const LISTS = { command: ['run'], args: ['all'], env: [{ name: 'LEVEL' }], envFrom: [{}], volumeMounts: MOUNTS };
const CONTAINERS = [{ name: 'proxy', image: 'registry.example/proxy:1', ...LISTS }];
const RESOURCES: Fields = {
  image_pull_secrets: [{ name: 'registry' }],
  volumes: [{ name: 'data' }, { name: 'cache' }],
  volume_mounts: MOUNTS,
  init_containers: CONTAINERS,
  sidecars: CONTAINERS,
};

/** A valid request to create a deployment of each source. */
export const DEPLOYMENTS: Readonly<Record<string, Fields>> = {
  git_host: { ...BUILT, source: 'git_host' },
  external_container: {
    ...READY,
    source: 'external_container',
    source_config: { resource_spec: RESOURCES, listener_config: {} },
    secret_references: [{ name: 'OTHER', secret_name: 'shop', secret_key: 'key' }],
  },
  internal_container: { ...READY, source: 'internal_container' },
  internal_source: { ...BUILT, source: 'internal_source' },
  internal_template: { ...READY, source: 'internal_template' },
};
const { git_host = {}, internal_source = {}, internal_template = {}, external_container = {} } = DEPLOYMENTS;

/** Fields that only some sources have, each with a valid value. */
export const ONLY_FOR: readonly (readonly [path: string, value: unknown, ...sources: string[]])[] = [
  ['secret_references', [], 'external_container'],
  ['source_config.integration_id', UNKNOWN, 'git_host'],
  ['source_config.repo_url', 'https://git.example/shop', 'git_host'],
  ['source_config.deployment_type', 'dev', 'git_host'],
  ['source_config.build_on_push', false, 'git_host'],
  ['source_config.custom_url', 'https://shop.example', 'external_container'],
  [SPEC, {}, 'external_container'],
  ['source_config.listener_id', UNKNOWN, 'external_container'],
  ['source_config.listener_config', {}, 'external_container'],
  [REPO_REF, 'main', 'git_host'],
  [GRAPH, 'graph.json', 'git_host', 'internal_source'],
  // The platform's own command line sends `image_uri` for both sources.
  ['source_revision_config.image_uri', 'registry.example/shop:1', 'external_container', 'internal_container'],
  ['source_revision_config.source_tarball_path', 'shop.tar.gz', 'internal_source'],
];

/** How a field is checked: a sentence, the message for a wrong value, such a value, and right ones. */
type Check = readonly [sentence: string, message: string, wrong: unknown, ...right: unknown[]];

const NEEDED: Check = ['is required', 'Field required', undefined];
const STRING: Check = ['is a string', 'Expected a string', 1, 'text', ''];
const NOT_NULL: Check = ['is not null', 'Expected a string', null];
const TEXT: Check = [...STRING, null];
const ID: Check = ['is a UUID', 'Expected a UUID', 'mine', UNKNOWN, null];
const BOOLEAN: Check = ['is a boolean', 'Expected true or false', 'yes', true, false, null];
const OBJECT: Check = ['is an object', 'Expected an object', [], {}];
const FREE_OBJECT: Check = [...OBJECT, { any: [1] }, null];
const LIST: Check = ['is a list', 'Expected a list', {}, [], null];
const MAP: Check = ['is a map', 'Expected an object with string values', ['text'], {}, null];
const IMMUTABLE: Check = ['is immutable', 'Cannot be changed', UNKNOWN, null];
const UNSETTABLE: Check = ['cannot be set', 'Unknown field, or a field that this request cannot set', UNKNOWN];
const NO_PUSH: Check = [
  'is not true for a tag',
  'Cannot be true if repo_ref is a tag (refs/tags/…)',
  true,
  false,
  null,
];

const WHOLE = 'Expected a whole number, at least 0';
const SIZE: readonly Check[] = [
  ['is an integer', WHOLE, 1.5, 2, null],
  ['is not negative', WHOLE, -1, 0],
];
const CORES: Check = ['is a number', 'Expected a number', '1', 1.25, null];
const LEAST: Check = ['is at least 0.1', 'Expected at least 0.1', 0.09, 0.1];
const atMost = (cores: number): Check => [`is at most ${cores}`, `Expected at most ${cores}`, cores + 0.01, cores];
const DB_CORES: readonly Check[] = [
  ['is not negative', 'Expected at least 0', -0.01, 0],
  ['is not lost by rounding', 'Expected 0, or at least 0.1, because CPU has one decimal', 0.04, 0.05, 100],
];
const DNS =
  'Expected a DNS label: up to 63 lower-case letters, digits and hyphens, without a hyphen at the start or end';
const LABEL: readonly Check[] = [
  ['is a DNS label', DNS, 7, 'a', '1'],
  ['has no upper-case letters', DNS, 'Proxy', 'proxy'],
  ['has no dots', DNS, 'a.b', 'a-b'],
  ['does not start with a hyphen', DNS, '-a', '1-a'],
  ['does not end with a hyphen', DNS, 'a-', 'a-1'],
  ['has at most 63 characters', DNS, 'a'.repeat(64), 'a'.repeat(63)],
];
const IDENTIFIER = 'Expected a C identifier: letters, digits and underscores, without a digit at the start';
const VARIABLE: readonly Check[] = [
  ['is a C identifier', IDENTIFIER, 'A-B', 'a_B', '_'],
  ['does not start with a digit', IDENTIFIER, '1A', 'A1'],
];

function oneOf(...words: readonly string[]): Check {
  return [`is one of ${words.length}`, `Expected one of ${words.join(', ')}`, 'other', ...words];
}

const TIERS = ['SERVERLESS_S', 'SERVERLESS_M', 'SERVERLESS_L', 'DEDICATED_S', 'DEDICATED_M', 'DEDICATED_L'];
const TIER: Check = [...oneOf(...TIERS), null];
const TYPE: Check = [...oneOf('dev_free', 'dev', 'prod', 'dev_zero', 'dev_free_zero'), null];

/** Returns a function for the rules of fields. Each rule has a request with a wrong value, and some with right ones. */
function checking(request: string, body: Fields) {
  const toRule = (path: string, [sentence, message, wrong, ...right]: Check): Rule => {
    const valid = right.length === 0 ? [body] : right.map((value) => withField(body, path, value));
    return [`${path} ${sentence}`, request, withField(body, path, wrong), `${path}: ${message}`, 422, { valid }];
  };
  return (paths: string, ...checks: readonly Check[]): Rule[] =>
    paths.split(' ').flatMap((path) => checks.map((check) => toRule(path, check)));
}

const git = checking(CREATE, git_host);
const uploaded = checking(CREATE, internal_source);
const template = checking(CREATE, internal_template);
const external = checking(CREATE, external_container);
const patch = checking(PATCH, {});

/** Returns a function for the rules of fields in an object of an `external_container` deployment. */
const checkingIn =
  (place: string) =>
  (fields: string, ...checks: readonly Check[]): Rule[] =>
    external(
      fields.replace(/\S+/g, (field) => `${place}.${field}`),
      ...checks,
    );
const spec = checkingIn(SPEC);

/** A field is only for some sources: a request with the field for each other source. */
function onlyFor([path, value, ...sources]: (typeof ONLY_FOR)[number]): Rule[] {
  const bodyOf = (source: string): Fields => withField(DEPLOYMENTS[source] ?? {}, path, value);
  const more = { valid: sources.map(bodyOf) };
  const others = Object.keys(DEPLOYMENTS).filter((source) => !sources.includes(source));
  const names = `${path}: Only for ${sources.join(' and ')}`;
  return others.map((source) => [`${path} is not for ${source}`, CREATE, bodyOf(source), names, 400, more]);
}

/** A field is at least, or at most, another field, which is 4. */
function beside(field: string, bound: 'at least' | 'at most', other: string): Rule[] {
  const [wrong, right] = bound === 'at least' ? [3, 5] : [5, 3];
  const check: Check = [`is ${bound} ${other}`, `Expected ${bound} 4, the value of ${other}`, wrong, 4, right, null];
  return checking(CREATE, withField(external_container, `${SPEC}.${other}`, 4))(`${SPEC}.${field}`, check);
}

function mounts(list: string): Rule[] {
  const mount = checkingIn(`${list}.0`);
  return [
    ...external(list, LIST),
    ...mount('name mountPath', NEEDED),
    ...mount('name', ['names a volume', 'Expected the name of one of the volumes', 'other', 'data', 'cache']),
    ...mount('mountPath', STRING, NOT_NULL),
    ...mount('subPath mountPropagation subPathExpr', TEXT),
    ...mount('readOnly', BOOLEAN),
    ...mount('path', UNSETTABLE),
  ];
}

function containers(list: string): Rule[] {
  const container = checkingIn(`${list}.0`);
  const withValue = checking(CREATE, withField(external_container, `${list}.0.env.0.value`, 'high'));
  const alone: Check = ['is not beside a value', 'Cannot be used with a non-empty value', {}, null];
  return [
    ...external(list, LIST),
    ...container('name image', NEEDED),
    ...container('name', ...LABEL),
    ...container('image', STRING, NOT_NULL),
    ...container('imagePullPolicy', [...oneOf('Always', 'Never', 'IfNotPresent'), null]),
    ...container('command args env envFrom', LIST),
    ...container('command.0 args.0', STRING),
    ...container('workingDir', TEXT),
    ...container('env.0.name', NEEDED, ...VARIABLE),
    ...container('env.0.value', TEXT),
    ...container('env.0.valueFrom', FREE_OBJECT),
    ...withValue(`${list}.0.env.0.valueFrom`, alone),
    ...container('envFrom.0', OBJECT),
    ...container('resources securityContext', OBJECT),
    ...container('resources.limits resources.requests', MAP),
    ...container('resources.limits.cpu resources.requests.cpu', STRING),
    ...container('ports resources.claims env.0.secret', UNSETTABLE),
    ...mounts(`${list}.0.volumeMounts`),
  ];
}

export const DEPLOYMENT_RULES: readonly Rule[] = [
  // Deployment
  ...template('name source source_config source_revision_config', NEEDED),
  ...template('name', STRING, NOT_NULL),
  ...template('source', ['is one of 5', `Expected one of ${Object.keys(DEPLOYMENTS).join(', ')}`, 'other']),
  ...template('source_config source_revision_config', OBJECT, ['is not null', 'Expected an object', null]),
  ...template('secrets', LIST),
  ...template('secrets.0.name secrets.0.value', NEEDED, STRING, NOT_NULL),
  ...external('secret_references', LIST),
  ...checkingIn('secret_references.0')('name secret_name secret_key', NEEDED, STRING, NOT_NULL),
  ...template('image_version', TEXT),
  ...template('deployment_tier', TIER),
  ...template('id tenant_id created_at updated_at status latest_revision_id active_revision_id', UNSETTABLE),
  ...template('is_managed_deep_agent revision_source', UNSETTABLE),
  ...patch('name source', UNSETTABLE),
  ...patch('revision_source', [...oneOf('git_host', 'internal_container', 'internal_source'), null]),

  // SourceConfig, ListenerConfig and SourceRevisionConfig
  ...ONLY_FOR.flatMap(onlyFor),
  ...git('source_config.integration_id', ID),
  ...git('source_config.repo_url', TEXT),
  ...git('source_config.deployment_type', TYPE),
  ...git('source_config.build_on_push', BOOLEAN),
  ...git('source_config.repoUrl', UNSETTABLE),
  ...external('source_config.custom_url', TEXT),
  ...external('source_config.listener_id', ID),
  ...external('source_config.listener_config', OBJECT),
  ...external('source_config.listener_config.k8s_namespace', TEXT),
  ...template('source_config.install_command source_config.build_command', TEXT),
  ...git(REPO_REF, TEXT),
  ...git(GRAPH, ['is required for git_host', 'Field required for git_host', undefined], STRING),
  ...uploaded(GRAPH, ['is required for internal_source', 'Field required for internal_source', null]),
  ...external('source_revision_config.image_uri', TEXT),
  ...uploaded('source_revision_config.source_tarball_path', TEXT),
  ...git('source_revision_config.repo_commit_sha', ['is read-only', 'Read-only', 'f00d', null]),
  ...patch('source_config.integration_id source_config.repo_url source_config.deployment_type', IMMUTABLE),
  ...patch('source_config.listener_id source_config.listener_config.k8s_namespace', IMMUTABLE),
  ...checking(CREATE, withField(git_host, REPO_REF, TAG))('source_config.build_on_push', NO_PUSH),
  ...checking(PATCH, withField({}, REPO_REF, TAG))('source_config.build_on_push', NO_PUSH),

  // ResourceSpec
  ...external(SPEC, OBJECT),
  ...spec('min_scale max_scale queue_min_scale queue_max_scale db_storage_gi db_max_connections', ...SIZE),
  ...spec('memory_mb queue_memory_mb redis_memory_mb core_memory_mb db_memory_mb memory_limit_mb', ...SIZE),
  ...spec('queue_memory_limit_mb redis_memory_limit_mb core_memory_limit_mb db_memory_limit_mb', ...SIZE),
  ...spec('cpu queue_cpu redis_cpu', CORES, LEAST, atMost(8)),
  ...spec('cpu_limit queue_cpu_limit redis_cpu_limit', CORES, LEAST, atMost(16)),
  ...spec('core_cpu core_cpu_limit', CORES, LEAST),
  ...spec('db_cpu db_cpu_limit', CORES, ...DB_CORES),
  ...beside('max_scale', 'at least', 'min_scale'),
  ...beside('queue_max_scale', 'at least', 'queue_min_scale'),
  ...['', 'queue_', 'redis_', 'core_', 'db_'].flatMap((part) => [
    ...beside(`${part}cpu_limit`, 'at least', `${part}cpu`),
    ...beside(`${part}memory_limit_mb`, 'at least', `${part}memory_mb`),
  ]),
  // The defaults of the queue are the values of the server.
  ...beside('queue_max_scale', 'at least', 'min_scale'),
  ...beside('queue_min_scale', 'at most', 'max_scale'),
  ...beside('queue_cpu_limit', 'at least', 'cpu'),
  ...beside('queue_memory_limit_mb', 'at least', 'memory_mb'),
  ...spec('labels annotations', MAP),
  ...spec('labels.team annotations.team', STRING),
  ...spec('service_account_name', TEXT),
  ...spec('image_pull_secrets', LIST),
  ...spec('image_pull_secrets.0.name', NEEDED, STRING, NOT_NULL),

  // Volume, VolumeMount, Container, EnvVar and ResourceRequirements
  ...checking(CREATE, withField(external_container, SPEC, {}))(`${SPEC}.volumes`, LIST),
  ...spec('volumes.1.name', NEEDED, ...LABEL, ['is unique', 'Another volume has this name', 'data', 'cache']),
  ...spec('volumes.1.configMap volumes.1.secret volumes.1.emptyDir volumes.1.persistentVolumeClaim', FREE_OBJECT),
  ...spec('volumes.1.nfs volumes.1.projected volumes.1.downwardAPI volumes.1.csi', FREE_OBJECT),
  ...spec('volumes.1.hostPath', UNSETTABLE),
  ...mounts(`${SPEC}.volume_mounts`),
  ...containers(`${SPEC}.init_containers`),
  ...containers(`${SPEC}.sidecars`),
  ...spec('init_containers.0.restartPolicy', ['is only for sidecars', 'Allowed only for sidecars', 'Always', null]),
  ...spec('sidecars.0.restartPolicy', [...oneOf('Always', 'OnFailure'), null]),
];
