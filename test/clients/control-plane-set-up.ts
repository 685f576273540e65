import { onTestFinished } from 'vitest';
import { ControlPlane, type ControlPlaneOptions } from '#src/clients/control-plane/control-plane.ts';
import type { DeploymentCreate } from '#src/clients/control-plane/deployment.ts';
import { ControlPlaneServer, type ControlPlaneServerOptions } from './control-plane-server.ts';

export const API_KEY = 'key-of-the-organisation';

/** Returns a client and its server, which are closed when the test has finished. */
export async function setUp(
  options: Partial<ControlPlaneOptions> = {},
  serverOptions: ControlPlaneServerOptions = {},
): Promise<{ server: ControlPlaneServer; client: ControlPlane }> {
  const server = await ControlPlaneServer.start({ apiKey: API_KEY, ...serverOptions });
  const client = new ControlPlane({ baseUrl: server.url, apiKey: API_KEY, ...options });
  onTestFinished(async () => {
    await client.close();
    await server.close();
  });
  return { server, client };
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
