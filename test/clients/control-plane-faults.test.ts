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
const cutOff: Fault = (request, response) => {
  response.writeHead(200, { 'content-length': '1000' }).write('{');
  setImmediate(() => request.socket.destroy());
};

/** Calls that create something with each attempt that arrives. */
const creating: readonly [
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

it.each(creating)('%s is sent once if the request may have arrived', async (_, call) => {
  const { server, client } = await setUp();
  const { id, latest_revision_id } = await client.deployments.create(makeDeployment());
  for (const [fault, code] of [
    [reset, 'RUNSPAN_NO_ANSWER'],
    [cutOff, 'RUNSPAN_NO_ANSWER'],
    [status(503, { 'retry-after': '1' }), 'RUNSPAN_SERVER_ERROR'],
  ] as const) {
    server.calls.length = 0;
    server.next(/^(POST|PATCH)/, fault);
    expect(await failure(call(client, id, latest_revision_id as string))).toMatchObject({ code });
    expect(server.count(/^(POST|PATCH)/)).toBe(1);
  }
});

describe('a call', () => {
  it.each([reset, status(500), cutOff])('that only reads is sent again', async (fault) => {
    const { server, client } = await setUp();
    const { id } = await client.deployments.create(makeDeployment());
    server.next(/^GET/, fault);
    expect(await client.deployments.get(id)).toMatchObject({ id });
    expect(server.count(/^GET/)).toBe(2);
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
