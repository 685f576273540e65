import { describe, expect, it } from 'vitest';
import type { ControlPlane } from '../../src/clients/control-plane/control-plane.ts';
import type { ControlPlaneServer } from './control-plane-server.ts';
import { makeDeployment, setUp } from './control-plane-set-up.ts';

const NOWHERE = '0193b3a0-ffff-7000-8000-00000000000f';

type Fault = Parameters<ControlPlaneServer['next']>[1];

const status =
  (code: number, headers: Record<string, string> = {}): Fault =>
  (_, response) =>
    response.writeHead(code, headers).end();

const reset: Fault = (request) => request.socket.destroy();
const silence: Fault = () => undefined;
const broken: Fault = (_, response) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"id": "0193');
const cutOff: Fault = (request, response) => {
  response.writeHead(200, { 'content-length': '1000' }).write('{');
  setImmediate(() => request.socket.destroy());
};

/** What makes something anew with each attempt that arrives. */
const makers: readonly [
  name: string,
  call: (client: ControlPlane, id: string, revision: string) => Promise<unknown>,
][] = [
  ['create', ({ deployments }) => deployments.create(makeDeployment())],
  ['createAndWait', ({ deployments }) => deployments.createAndWait(makeDeployment(), { intervalMs: 1 })],
  ['update', ({ deployments }, id) => deployments.update(id, { secrets: [] })],
  ['updateAndWait', ({ deployments }, id) => deployments.updateAndWait(id, { secrets: [] }, { intervalMs: 1 })],
  ['redeploy', ({ revisions }, id, revision) => revisions.redeploy(id, revision)],
  ['redeployAndWait', ({ deployments }, id, revision) => deployments.redeployAndWait(id, revision, { intervalMs: 1 })],
  [
    'listeners.create',
    ({ listeners }) => listeners.create({ compute_type: 'k8s', compute_id: 'east', compute_config: {} }),
  ],
];

async function failure(promise: PromiseLike<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.unreachable('it resolved'),
    (thrown: unknown) => thrown,
  );
}

const faults: readonly [what: string, fault: Fault, code: string][] = [
  ['a connection that breaks', reset, 'RUNSPAN_NO_ANSWER'],
  ['an answer that breaks off', cutOff, 'RUNSPAN_NO_ANSWER'],
  ['no answer', silence, 'RUNSPAN_TIMEOUT'],
  ['503, though it asks for another attempt', status(503, { 'retry-after': '1' }), 'RUNSPAN_SERVER_ERROR'],
  ['502', status(502), 'RUNSPAN_SERVER_ERROR'],
  ['a redirect', status(307, { location: '/elsewhere' }), 'RUNSPAN_UNEXPECTED_STATUS'],
  ['JSON that is broken', broken, 'RUNSPAN_INVALID_ANSWER'],
];

describe.each(makers)('%s', (name, call) => {
  // To wait for nothing takes its time: two of them stand for all.
  const met = faults.filter(([, fault]) => fault !== silence || name === 'create' || name === 'updateAndWait');
  it.each(met)('is sent once where it meets %s', async (_, fault, code) => {
    const { server, client } = await setUp({ timeoutMs: fault === silence ? 300 : 30_000 });
    const { id, latest_revision_id } = await client.deployments.create(makeDeployment());
    server.calls.length = 0;
    server.next(/^(POST|PATCH)/, fault);
    expect(await failure(call(client, id, latest_revision_id as string))).toMatchObject({ code });
    expect(server.count(/^(POST|PATCH)/)).toBe(1);
    expect(server.calls.every(({ path }) => path.startsWith('/v2/'))).toBe(true);
  });
});

describe('a call', () => {
  it('is sent again after 429, which has taken nothing, when the service says', async () => {
    const { server, client } = await setUp();
    server.next(/^POST/, status(429, { 'retry-after': '1' }));
    const startedMs = performance.now();
    await client.deployments.create(makeDeployment());
    expect(performance.now() - startedMs).toBeGreaterThan(990);
    expect([server.count(/^POST/), server.deployments.size]).toEqual([2, 1]);
  });

  it.each([reset, status(500), cutOff])('that only reads is sent again', async (fault) => {
    const { server, client } = await setUp();
    const { id } = await client.deployments.create(makeDeployment());
    server.next(/^GET/, fault);
    expect(await client.deployments.get(id)).toMatchObject({ id });
    expect(server.count(/^GET/)).toBe(2);
  });

  it('is given up after so many attempts as are allowed', async () => {
    const { server, client } = await setUp({ maxRetries: 1 });
    for (let count = 0; count < 3; count++) server.next(/^GET/, status(503));
    expect(await failure(client.deployments.get(NOWHERE))).toMatchObject({ status: 503, request: { attempts: 2 } });
    expect(await failure(client.deployments.get(NOWHERE, { maxRetries: 0 }))).toMatchObject({
      request: { attempts: 1 },
    });
  });

  it('ends with the reason of its signal, whichever it is, and frees its connection', async () => {
    const { server, client } = await setUp();
    const reason = new Error('enough');
    const options = (): { signal: AbortSignal } => {
      const controller = new AbortController();
      server.next(/./, () => controller.abort(reason));
      return { signal: controller.signal };
    };
    const { deployments, revisions, listeners, integrations } = client;
    for (const call of [
      () => deployments.create(makeDeployment(), options()),
      () => deployments.get(NOWHERE, options()),
      () => deployments.list(options()),
      () => deployments.update(NOWHERE, {}, options()),
      () => deployments.delete(NOWHERE, options()),
      () => deployments.deleteMany([NOWHERE], options()),
      () => deployments.uploadUrl(NOWHERE, options()),
      () => deployments.createAndWait(makeDeployment(), options()),
      () => deployments.updateAndWait(NOWHERE, { secrets: [] }, options()),
      () => deployments.redeployAndWait(NOWHERE, NOWHERE, options()),
      () => revisions.list(NOWHERE, options()),
      () => revisions.get(NOWHERE, NOWHERE, options()),
      () => revisions.redeploy(NOWHERE, NOWHERE, options()),
      () => listeners.list(options()),
      () => integrations.list(options()),
      () => integrations.repositories(NOWHERE, options()),
    ]) {
      expect(await failure(call())).toBe(reason);
    }
    expect(server.deployments.size).toBe(0);
    expect(server.calls.length).toBe(16);
  });

  it('ends when the client is closed', async () => {
    const { server, client } = await setUp();
    server.next(/^GET/, () => void client.close());
    expect(await failure(client.deployments.get(NOWHERE))).toMatchObject({ code: 'RUNSPAN_NO_ANSWER' });
  });

  it('after that has not arrived', async () => {
    const { server, client } = await setUp();
    await client[Symbol.asyncDispose]();
    const closed = { code: 'RUNSPAN_NO_ANSWER', mayHaveArrived: false };
    expect(await failure(client.deployments.create(makeDeployment()))).toMatchObject(closed);
    expect(await failure(client.deployments.waitUntilDeployed(NOWHERE))).toMatchObject(closed);
    expect(server.calls).toEqual([]);
  });
});
