import { onTestFinished } from 'vitest';
import { ControlPlane, type ControlPlaneOptions } from '#src/clients/control-plane/control-plane.ts';
import type { DeploymentCreate } from '#src/clients/control-plane/deployment.ts';
import type { RouteResponse } from '#src/receiver/http/route.ts';
import type { PlatformAnswer } from '#src/testing/platform/requests.ts';
import { createPlatform, type Platform, type PlatformOptions } from '#src/testing.ts';

export const API_KEY = 'key-of-the-organisation';
export const TENANT = '0193b3a0-2222-7000-8000-000000000002';

/** Returns a client and a self-hosted platform, which are closed when the test has finished. */
export async function setUp(
  options: Partial<ControlPlaneOptions> = {},
  platformOptions: PlatformOptions = {},
): Promise<{ platform: Platform; client: ControlPlane }> {
  const keys = { [API_KEY]: [TENANT] };
  const platform = await createPlatform({ hosting: 'self-hosted', statusMs: 0, keys, ...platformOptions });
  const client = new ControlPlane({ baseUrl: platform.url, apiKey: API_KEY, ...options });
  onTestFinished(async () => {
    await client.close();
    await platform.close();
  });
  return { platform, client };
}

export function makeDeployment(fields: Partial<DeploymentCreate> = {}): DeploymentCreate {
  return {
    name: 'agent',
    source: 'external_container',
    source_config: {},
    source_revision_config: { image_uri: 'registry.example/agent:1' },
    ...fields,
  };
}

export const GIT: DeploymentCreate = makeDeployment({
  source: 'git_host',
  source_config: { repo_url: 'https://git.example/acme/agent', build_on_push: true },
  source_revision_config: { repo_ref: 'main', graph_config_path: 'graph.json' },
});

export const SOURCE: DeploymentCreate = makeDeployment({
  source: 'internal_source',
  source_revision_config: { graph_config_path: 'graph.json' },
});

export function count({ requests }: Platform, pattern: RegExp): number {
  return requests.filter(({ method, path }) => pattern.test(`${method} ${path}`)).length;
}

/** Answers that `platform.next` accepts. */
export const json =
  (body: unknown, status = 200): (() => RouteResponse) =>
  () => ({ status, body });
export const text =
  (content: string, status = 200, headers: Record<string, string> = {}): PlatformAnswer =>
  () => ({ status, content, headers });
export const never: PlatformAnswer = () => new Promise(() => {});
export const broken: PlatformAnswer = ({ socket }) => {
  socket.destroy();
  return { status: 503 };
};
