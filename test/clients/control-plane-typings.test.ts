import { expectTypeOf, it } from 'vitest';
import {
  type ControlPlane,
  createsRevision,
  type Deployed,
  type Deployment,
  type DeploymentCreate,
  type DeploymentPatch,
  effectiveResources,
  type Page,
  type ResourceSpec,
  type Revision,
  type RevisionError,
  type RevisionStatus,
} from '../../src/clients.ts';

type Calls = ControlPlane['deployments'];

it('requests have the words of the interface alone, answers any', () => {
  expectTypeOf<'git_host'>().toExtend<DeploymentCreate['source']>();
  expectTypeOf<'github'>().not.toExtend<DeploymentCreate['source']>();
  expectTypeOf<'HIBERNATING'>().toExtend<Deployment['status']>();
  expectTypeOf<'HIBERNATING'>().toExtend<RevisionStatus>();
  expectTypeOf<'git_host'>().toExtend<Deployment['source']>();
});

it('what the service sets cannot be given, and what stays cannot be changed', () => {
  expectTypeOf<DeploymentCreate>().not.toHaveProperty('id');
  expectTypeOf<DeploymentCreate>().not.toHaveProperty('status');
  expectTypeOf<DeploymentPatch>().not.toHaveProperty('name');
  expectTypeOf<DeploymentPatch>().not.toHaveProperty('source');
  expectTypeOf<Pick<DeploymentCreate, 'name' | 'source'>>().not.toExtend<DeploymentCreate>();
  expectTypeOf<Record<never, never>>().toExtend<DeploymentPatch>();
});

it('what a deployment answers with can be given again', () => {
  expectTypeOf<Pick<Deployment, 'source_config' | 'source_revision_config' | 'secrets'>>().toExtend<DeploymentPatch>();
});

it('fields that only a service knows can be read, but not given', () => {
  expectTypeOf<Deployment['region']>().toEqualTypeOf<unknown>();
  expectTypeOf<Revision['region']>().toEqualTypeOf<unknown>();
  expectTypeOf<DeploymentCreate>().not.toHaveProperty('region');
});

it('a revision error has one of three codes', () => {
  expectTypeOf<RevisionError['code']>().toEqualTypeOf<
    'RUNSPAN_REVISION_FAILED' | 'RUNSPAN_REVISION_SUPERSEDED' | 'RUNSPAN_TIMEOUT'
  >();
});

it('calls tell what they resolve with', () => {
  expectTypeOf<ReturnType<Calls['create']>>().resolves.toEqualTypeOf<Deployment>();
  expectTypeOf<Awaited<ReturnType<Calls['list']>>>().toEqualTypeOf<Page<Deployment>>();
  expectTypeOf<ReturnType<Calls['createAndWait']>>().resolves.toEqualTypeOf<Deployed>();
  expectTypeOf<Awaited<ReturnType<Calls['updateAndWait']>>['revision']>().toEqualTypeOf<Revision | undefined>();
  expectTypeOf<ReturnType<Calls['uploadSource']>>().resolves.toExtend<DeploymentPatch['source_revision_config']>();
  expectTypeOf<Parameters<Calls['createAndWait']>[1]>().not.toHaveProperty('revisionId');
  expectTypeOf(effectiveResources).toEqualTypeOf<(spec: ResourceSpec) => ResourceSpec>();
  expectTypeOf(createsRevision).returns.toEqualTypeOf<boolean>();
});
