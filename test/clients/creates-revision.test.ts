import { expect, it } from 'vitest';
import { createsRevision } from '../../src/clients/creates-revision.ts';
import type { DeploymentPatch } from '../../src/clients/deployment.ts';

it.each<DeploymentPatch>([
  { source_revision_config: { repo_ref: 'main' } },
  { source_revision_config: { graph_config_path: 'graph.json' } },
  { source_revision_config: { image_uri: 'agent:2' } },
  { source_revision_config: { source_tarball_path: 'uploads/1' } },
  { secrets: [{ name: 'KEY', value: 'a' }] },
  { secrets: [] },
  { source_config: { resource_spec: {} } },
])('%j makes a revision', (patch) => {
  expect(createsRevision(patch)).toBe(true);
});

it.each<DeploymentPatch>([
  {},
  { source_config: null, source_revision_config: null, secrets: null },
  { source_config: { build_on_push: true, resource_spec: null, custom_url: 'https://a.example' } },
  { source_revision_config: { repo_ref: null } },
  { revision_source: 'git_host', secret_references: [], deployment_tier: 'DEDICATED_S', image_version: '1' },
])('%j makes none', (patch) => {
  expect(createsRevision(patch)).toBe(false);
});

it.each([undefined, null, 'text', []])('%j is no object', (value) => {
  expect(() => createsRevision(value as object)).toThrow(
    expect.objectContaining({ code: 'RUNSPAN_INVALID_REQUEST', message: 'createsRevision: patch: Expected an object' }),
  );
});
