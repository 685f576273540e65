import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  type ConfigureOptions,
  createExporter,
  fromHeaders,
  redact,
  startRun,
  toHeaders,
  traceable,
  withRun,
} from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';
import { CHILD, CHILD_ORDER, call, makeRun, multipart, part, ROOT, sendMultipart, start } from '../receiver/wire.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { service } from './service.ts';

const PROTOTYPES = [Object.prototype, Array.prototype, Function.prototype, Map.prototype, Promise.prototype];
const keysOf = () => PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype).map(String).join());
const before = keysOf();

afterEach(() => expect(keysOf()).toEqual(before));

/** JSON, because object literals do not have `__proto__` as an own key. */
const HOSTILE =
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"prototype":{"polluted":3},"toString":4,"hasOwnProperty":5,"valueOf":6}';
const hostile = (): Record<string, unknown> => JSON.parse(HOSTILE);

describe('keys that name a prototype', () => {
  test('are recorded as ordinary keys in payloads, metadata, events and tags [security 12]', async () => {
    const { server } = await service();
    const exporter = createExporter({ endpoint: server.url });
    const tags = ['__proto__', 'constructor'];
    const run = startRun({ name: '__proto__', exporter, inputs: hostile(), metadata: hostile(), tags });
    run.set({ metadata: hostile(), inputs: { ...hostile(), more: [hostile()] } });
    run.event('__proto__', hostile());
    run.end(hostile());
    await exporter.close();
    const [request] = server.received;
    type Part = Record<string, Record<string, unknown>>;
    const [main, inputs, outputs] = [...readJsonParts(request as NonNullable<typeof request>).values()] as Part[];
    const same = (value: unknown) => JSON.stringify(value);
    expect(same(main?.extra?.metadata)).toBe(HOSTILE);
    expect(same(outputs)).toBe(HOSTILE);
    expect(same(inputs)).toBe(`${HOSTILE.slice(0, -1)},"more":[${HOSTILE}]}`);
    expect(main?.tags).toEqual(tags);
    expect({}).not.toHaveProperty('polluted');
  });

  test('are not read as options [security 12]', async () => {
    const { server, lines } = await service();
    const given = JSON.parse(
      '{"__proto__":{"apiKey":"evil","hideInputs":true,"limits":{"queueRuns":1},"name":"evil","exporter":1,"paths":["**"]}}',
    );
    const limits = JSON.parse('{"__proto__":{"queueRuns":1}}');
    const headers = JSON.parse('{"__proto__":"evil","constructor":"mine"}');
    const options = { ...given, endpoint: server.url, limits, headers, redact: redact() } as ConfigureOptions;
    const exporter = createExporter(options);
    const traced = traceable((value: unknown) => value, { exporter, name: 'mine' });
    traceable(() => 1, given)();
    expect(traced({ a: 1 })).toEqual({ a: 1 });
    startRun({ ...given, name: 'hand', exporter }).end();
    await exporter.close();
    expect(exporter.stats()).toMatchObject({ created: 2, sent: 2 });
    const [request] = server.received;
    expect(request?.headers).toMatchObject({ constructor: 'mine' });
    expect(request?.headers).not.toHaveProperty('x-api-key');
    expect(request?.body.toString()).toContain('{"a":1}');
    expect(request?.body.toString()).not.toContain('evil');
    expect(lines.filter((line) => line.includes('unknown option `__proto__`'))).not.toEqual([]);
    expect(redact(given).hidesAll).toBe(true);
  });

  test('in incoming headers and baggage change no prototype [security 12]', () => {
    environmentOf();
    logLines();
    const runs = recordRuns();
    onTestFinished(() => runs[Symbol.dispose]?.());
    const baggage = `runspan-metadata=${encodeURIComponent(HOSTILE)},runspan-tags=${encodeURIComponent('["__proto__"]')},__proto__=1,constructor=2`;
    const headers = JSON.parse(
      `{"__proto__":{"runspan-trace":"evil"},"runspan-trace":"${CHILD_ORDER}","baggage":${JSON.stringify(baggage)}}`,
    );
    const remote = fromHeaders(headers);
    expect([remote?.id, remote?.traceId]).toEqual([CHILD, ROOT]);
    const onward = withRun(remote, () => toHeaders(startRun({ name: 'below' }), headers));
    expect(onward.baggage).toContain('__proto__=1');
    expect(Object.getPrototypeOf(onward)).toBe(Object.prototype);
    expect({}).not.toHaveProperty('polluted');
  });

  test('stay ordinary keys in runs, parts and names that a receiver gets [security 12]', async () => {
    const receiver = await start();
    const record = JSON.stringify({ ...makeRun(), extra: { metadata: 'METADATA' } })
      .replace('"METADATA"', HOSTILE)
      .replace('{', '{"__proto__":{"end_time":1},');
    const body = multipart(
      part(`post.${ROOT}`, Buffer.from(record)),
      part(`post.${ROOT}.inputs`, Buffer.from(HOSTILE)),
      part(`attachment.${ROOT}.__proto__`, Buffer.from('x'), ['Content-Type: text/plain']),
    );
    expect((await sendMultipart(receiver, body)).status).toBe(202);
    const patch = `{"outputs":${HOSTILE},"extra":{"metadata":${HOSTILE}},"dotted_order":"${makeRun().dotted_order}","trace_id":"${ROOT}"}`;
    const json = { 'content-type': 'application/json' };
    await call(`${receiver.url}/runs/${ROOT}`, 'PATCH', patch, json);
    for (const path of ['/runs', '/runs/batch']) {
      for (const text of [HOSTILE, `[${HOSTILE}]`, `{"post":[${HOSTILE}],"__proto__":{"post":[]}}`])
        await call(receiver.url + path, 'POST', text, json);
    }
    const [run] = await receiver.runs();
    expect([run?.inputs, run?.outputs].map((value) => JSON.stringify(value))).toEqual([HOSTILE, HOSTILE]);
    expect(run?.attachments?.map(({ name }) => name)).toEqual(['__proto__']);
    for (const key of ['polluted', 'end_time']) expect(run).not.toHaveProperty(key);
    expect({}).not.toHaveProperty('polluted');
  });
});
