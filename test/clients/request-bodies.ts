import { controlPlaneFields, type Field, type ResourceName } from '../../src/clients/control-plane-fields.ts';

type Json = Record<string, unknown>;
type Step = string | number;

export const UUID = '0193b3a0-1111-7000-8000-000000000001';

const SPEC = ['source_config', 'resource_spec'];
const SIDECAR = [...SPEC, 'sidecars', 0];

/** Where a resource is in the body of a request that creates a deployment. */
export const places: Readonly<Partial<Record<ResourceName, readonly Step[]>>> = {
  Deployment: [],
  SourceConfig: ['source_config'],
  ListenerConfig: ['source_config', 'listener_config'],
  SourceRevisionConfig: ['source_revision_config'],
  Secret: ['secrets', 0],
  SecretReference: ['secret_references', 0],
  ResourceSpec: SPEC,
  LocalObjectReference: [...SPEC, 'image_pull_secrets', 0],
  Volume: [...SPEC, 'volumes', 0],
  VolumeMount: [...SPEC, 'volume_mounts', 0],
  Container: SIDECAR,
  EnvVar: [...SIDECAR, 'env', 0],
  ResourceRequirements: [...SIDECAR, 'resources'],
};

/** The least that creates a deployment of a source. */
export function leastOf(source: string): Json {
  const isBuilt = source === 'git_host' || source === 'internal_source';
  const source_revision_config = isBuilt ? { graph_config_path: 'graph.json' } : {};
  return { name: 'agent', source, source_config: {}, source_revision_config, secrets: [] };
}

/** A deployment of a cluster of one's own that has every resource there is. */
export function fullBody(): Json {
  const sidecar = { name: 'proxy', image: 'proxy:1', env: [{ name: 'PORT' }], resources: {}, volumeMounts: [] };
  return {
    name: 'agent',
    source: 'external_container',
    source_config: {
      listener_config: {},
      resource_spec: {
        image_pull_secrets: [{ name: 'registry' }],
        volumes: [{ name: 'data' }],
        volume_mounts: [{ name: 'data', mountPath: '/data' }],
        sidecars: [sidecar],
      },
    },
    source_revision_config: { image_uri: 'registry.example/agent:1' },
    secrets: [{ name: 'KEY', value: 'a value' }],
    secret_references: [{ name: 'KEY_2', secret_name: 'keys', secret_key: 'second' }],
  };
}

/** The body that a field can be set in: its source has the field. */
export function bodyFor({ sources }: Field): Json {
  return sources === undefined || sources.includes('external_container') ? fullBody() : leastOf(sources[0] as string);
}

/** The same body with a value somewhere in it; undefined takes away what was there. */
export function withValue(body: Json, path: readonly Step[], value: unknown): Json {
  const copy = structuredClone(body);
  let inner: Record<Step, unknown> = copy;
  for (const step of path.slice(0, -1)) inner = inner[step] as Record<Step, unknown>;
  const last = path.at(-1) as Step;
  if (value === undefined) delete inner[last];
  else inner[last] = value;
  return copy;
}

/** What a field takes. */
export function goodValue(name: string, field: Field): unknown {
  const value = goodItem(name, field);
  return field.list ? [value] : value;
}

function goodItem(name: string, { type, values, min, form }: Field): unknown {
  if (values !== undefined) return values[0];
  if (form !== undefined) return form === 'DNS label' ? 'data' : 'PORT_2';
  switch (type) {
    case 'uuid':
      return UUID;
    case 'string':
    case 'date-time':
      // That of a mount is the name of a volume.
      return name === 'name' ? 'data' : 'some text';
    case 'boolean':
      return true;
    case 'integer':
      return 2;
    case 'number':
      return min ?? 0.5;
    case 'map':
      return { team: 'search' };
    case 'object':
      return { optional: true };
    default:
      return leastResource(type);
  }
}

/** What no field of the type takes. */
export function badValue({ type, list }: Field): unknown {
  if (list) return 'no list';
  return type === 'string' || type === 'date-time' || type === 'uuid' ? 7 : type === 'boolean' ? 'true' : 'x';
}

function leastResource(resource: ResourceName): Json {
  const required = Object.entries(controlPlaneFields[resource]).filter(([, { required }]) => required);
  return Object.fromEntries(required.map(([name, field]) => [name, goodValue(name, field)]));
}
