import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { describe, expect, it } from 'vitest';
import {
  controlPlaneFields,
  type Field,
  type Fields,
  type ResourceName,
} from '../../src/clients/control-plane-fields.ts';

/** Of an interface: each field with its type as it is written, and `?` where it may be left out. */
type Written = Record<string, { readonly type: string; readonly isOptional: boolean }>;

interface Member {
  readonly type: string;
  readonly key: { readonly name: string };
  readonly optional: boolean;
  readonly typeAnnotation: { readonly typeAnnotation: { readonly start: number; readonly end: number } };
}

/** The interfaces of a file of types. */
function interfacesOf(file: string): Map<string, Written> {
  const path = new URL(`../../src/clients/${file}.ts`, import.meta.url);
  const text = readFileSync(path, 'utf8');
  const found = new Map<string, Written>();
  for (const statement of parseSync(path.pathname, text).program.body) {
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : undefined;
    if (declared?.type !== 'TSInterfaceDeclaration') continue;
    const members = declared.body.body as unknown as readonly Member[];
    // What only a service knows has no name here.
    const named = members.filter(({ type }) => type !== 'TSIndexSignature');
    const fields = named.map(({ key, optional, typeAnnotation }) => {
      const { start, end } = typeAnnotation.typeAnnotation;
      return [key.name, { type: text.slice(start, end).replace(/\s+/g, ' '), isOptional: optional }] as const;
    });
    found.set(declared.id.name, Object.fromEntries(fields));
  }
  return found;
}

const declared = new Map(
  ['deployment', 'resource-spec', 'revision', 'listener'].flatMap((file) => [...interfacesOf(file)]),
);

/** Types that have a name of their own, and the words that they are for. */
const NAMED: Readonly<Record<string, string>> = {
  DeploymentSource: 'string',
  DeploymentStatus: 'string',
  DeploymentTier: 'string',
  DeploymentType: 'string',
  RevisionSource: 'string',
  RevisionStatus: 'string',
};

/** The type of a field in plain words, without null. */
function plain(type: string): string {
  const parts = type.split(' | ').filter((part) => part !== 'null' && part !== '(string & {})');
  const words = parts.map((part) => NAMED[part] ?? (part.startsWith("'") ? 'string' : part));
  return [...new Set(words)].join(' | ');
}

function typeOf({ type, list }: Field): string {
  const names: Readonly<Record<string, string>> = {
    uuid: 'string',
    'date-time': 'string',
    integer: 'number',
    object: 'Record<string, unknown>',
    map: 'Record<string, string>',
  };
  return (names[type] ?? type) + (list ? '[]' : '');
}

function expected(fields: Fields, isOptional: (field: Field) => boolean, isNullable: (field: Field) => boolean) {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      { type: typeOf(field), isOptional: isOptional(field), isNullable: isNullable(field) },
    ]),
  );
}

function written(name: string) {
  return Object.fromEntries(
    Object.entries(declared.get(name) ?? {}).map(([field, { type, isOptional }]) => [
      field,
      { type: plain(type), isOptional, isNullable: type.split(' | ').includes('null') },
    ]),
  );
}

function only(fields: Fields, holds: (field: Field) => boolean): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, field]) => holds(field)));
}

describe('the types', () => {
  it.each(Object.keys(controlPlaneFields) as ResourceName[])('%s has the fields of the table', (resource) => {
    const fields = only(controlPlaneFields[resource], ({ patchOnly }) => !patchOnly);
    expect(written(resource)).toEqual(
      expected(
        fields,
        ({ required }) => !required,
        ({ nullable }) => nullable === true,
      ),
    );
  });

  it.each(['Deployment', 'Listener'] as const)('%sCreate has those that can be set, and %s', (resource) => {
    const fields = only(controlPlaneFields[resource], ({ readOnly, patchOnly }) => !readOnly && !patchOnly);
    const isOptional = ({ required, default: standard }: Field): boolean => !required || standard !== undefined;
    expect(written(`${resource}Create`)).toEqual(expected(fields, isOptional, ({ nullable }) => nullable === true));
  });

  it.each(['Deployment', 'Listener'] as const)('%sPatch has those that can be changed', (resource) => {
    const fields = only(controlPlaneFields[resource], ({ readOnly, immutable }) => !readOnly && !immutable);
    const patch = Object.fromEntries(Object.entries(written(`${resource}Patch`)).sort());
    expect(patch).toEqual(
      expected(
        fields,
        () => true,
        () => true,
      ),
    );
  });

  it.each([
    ['deployment', 'DeploymentSource', controlPlaneFields.Deployment.source],
    ['deployment', 'RevisionSource', controlPlaneFields.Deployment.revision_source],
    ['deployment', 'DeploymentStatus', controlPlaneFields.Deployment.status],
    ['deployment', 'DeploymentTier', controlPlaneFields.Deployment.deployment_tier],
    ['deployment', 'DeploymentType', controlPlaneFields.SourceConfig.deployment_type],
    ['revision', 'RevisionStatus', controlPlaneFields.Revision.status],
  ])('of %s.ts name the words of %s', (file, name, field) => {
    const text = readFileSync(new URL(`../../src/clients/${file}.ts`, import.meta.url), 'utf8');
    const [, union = ''] = new RegExp(`export type ${name} =([^;]*);`).exec(text) ?? [];
    expect([...union.matchAll(/'([^']+)'/g)].map(([, word]) => word)).toEqual(field?.values);
  });
});

describe('the tables', () => {
  it('have so many fields as the interface', () => {
    const counts = Object.entries(controlPlaneFields).map(([name, fields]) => [name, Object.keys(fields).length]);
    expect(Object.fromEntries(counts)).toEqual({
      // One more than the interface: revision_source.
      Deployment: 17,
      SourceConfig: 10,
      ListenerConfig: 1,
      SourceRevisionConfig: 5,
      Secret: 2,
      SecretReference: 3,
      ResourceSpec: 34,
      LocalObjectReference: 1,
      Volume: 9,
      VolumeMount: 6,
      Container: 12,
      EnvVar: 3,
      ResourceRequirements: 2,
      Revision: 6,
      Listener: 7,
      ComputeConfig: 1,
    });
  });

  it('bound the cores as the limits say', () => {
    const bounds = Object.entries(controlPlaneFields.ResourceSpec)
      .filter(([, { min, max }]) => min !== undefined || max !== undefined)
      .map(([name, { min, max, decimals }]) => `${name} ${min}..${max ?? ''} ${decimals}`);
    expect(bounds).toEqual([
      'cpu 0.1..8 1',
      'cpu_limit 0.1..16 1',
      'queue_cpu 0.1..8 1',
      'queue_cpu_limit 0.1..16 1',
      'redis_cpu 0.1..8 1',
      'redis_cpu_limit 0.1..16 1',
      'core_cpu 0.1.. 1',
      'core_cpu_limit 0.1.. 1',
    ]);
  });

  it('say what a deployment cannot change, and what makes a revision', () => {
    const named = (holds: (field: Field) => boolean | undefined): string[] =>
      Object.values(controlPlaneFields).flatMap((fields) =>
        Object.keys(only(fields, (field) => holds(field) === true)),
      );
    expect(named(({ immutable }) => immutable)).toEqual([
      'name',
      'source',
      'integration_id',
      'repo_url',
      'deployment_type',
      'listener_id',
      'k8s_namespace',
      'compute_type',
      'compute_id',
    ]);
    expect(named(({ makesRevision }) => makesRevision)).toEqual([
      'secrets',
      'resource_spec',
      'repo_ref',
      'graph_config_path',
      'image_uri',
      'source_tarball_path',
    ]);
  });
});
