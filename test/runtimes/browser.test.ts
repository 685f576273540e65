import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import type * as clients from '#src/clients.ts';
import type * as runspan from '#src/index.ts';

async function imported<Entry = typeof runspan>(entry = 'runspan'): Promise<Entry> {
  const { outputFiles } = await build({
    stdin: { contents: `export * from '${entry}'`, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
  });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? '')}`);
}

it('calls functions unchanged in browsers, and records nothing', async () => {
  const { flush, startRun, stats, traceable, withFlush } = await imported();
  class Scale {
    factor = 2;
    times = traceable(function (this: Scale, value: number): number {
      return this.factor * value;
    });
  }
  const scale = new Scale();
  expect(scale.times(3)).toBe(6);
  expect(scale.times.with({ name: 'other' }).call(scale, 4)).toBe(8);
  const handler = async (): Promise<string> => 'handled';
  expect(withFlush(handler)).toBe(handler);
  const run = startRun({ name: 'run' });
  expect(run.child({ name: 'child' })).toMatchObject({ name: 'child', parentRunId: run.id, traceId: run.id });
  run.end({ answer: 1 });
  expect(await flush()).toEqual({ ok: true, pending: 0 });
  expect(stats()).toMatchObject({ created: 0, sent: 0 });
});

it('passes on a run that a page has received in headers', async () => {
  const { fromHeaders, runIdFrom, toHeaders, withRun } = await imported();
  const id = runIdFrom('order 7');
  const order = `20261120T072240123456Z${id}`;
  const run = fromHeaders(new Headers({ 'runspan-trace': order, baggage: 'team=search,runspan-sampled=false' }));
  expect(run).toMatchObject({ id, traceId: id, dottedOrder: order });
  expect(withRun(run, () => toHeaders(undefined, { accept: 'text/html' }))).toEqual({
    accept: 'text/html',
    'runspan-trace': order,
    baggage: 'runspan-sampled=false',
  });
  expect(toHeaders()).toEqual({});
  expect(fromHeaders({ 'runspan-trace': 'no order' })).toBeUndefined();
  // The same id as on Node (RFC 9562, 5.5).
  const { runIdFrom: ofNode } = await import('#src/run/ids.ts');
  expect(id).toBe(ofNode('order 7'));
});

it('a call that needs files is rejected with the name of the function that is missing', async () => {
  const { ControlPlane } = await imported<typeof clients>('runspan/clients');
  const { deployments } = new ControlPlane({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' });
  const upload = deployments.uploadSource('0193b3a0-0000-7000-8000-000000000001', './source');
  await expect(upload).rejects.toMatchObject({
    code: 'RUNSPAN_INVALID_REQUEST',
    message: 'sourceArchive needs Node.js',
  });
});
