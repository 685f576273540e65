import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Receiver, Store } from '#src/receiver.ts';
import { cases } from '../support/campaign.ts';
import { startReceiver } from '../support/receiver.ts';
import { BOUNDARY, makeRun, multipart, part } from './wire.ts';

const digits = (maxLength: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${maxLength}}$`));
const integer = fc.tuple(fc.constantFrom('', '-'), digits(40)).map(([sign, all]) => sign + all.replace(/^0+(?=.)/, ''));
const decimal = fc.tuple(integer, digits(30)).map(([whole, fraction]) => `${whole}.${fraction}`);
const exponent = fc.tuple(fc.constantFrom('e', 'E+', 'e-'), digits(2));
const power = fc.tuple(fc.oneof(integer, decimal), exponent).map(([number, end]) => number + end.join(''));
const numbers = fc.array(fc.oneof(integer, decimal, power), { minLength: 1, maxLength: 20 });

/** Returns an integer unchanged, and any other number in a form that depends only on its value. */
function exactly(number: string): string {
  if (/^-?[1-9]\d*$/.test(number)) return number;
  const [, sign, whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(number) ?? [];
  let [value, power] = [BigInt(whole + fraction), Number(exponent) - fraction.length];
  if (value === 0n) return '0';
  for (; value % 10n === 0n; power += 1) value /= 10n;
  // Up to this length, JavaScript writes a whole number without an exponent.
  const isShort = power >= 0 && `${value}`.length + power <= 21;
  return isShort ? `${sign}${value}${'0'.repeat(power)}` : `${sign}${value}e${power}`;
}

/** Returns the lists named `order` in a JSON text, also in JSON text that it contains. */
function listsIn(text: string): string[][] {
  return [...text.matchAll(/"order\\*":\s*\[([\d.,eE+\s-]*)\]/g)].map(([, list = '']) =>
    list.split(',').map((number) => exactly(number.trim())),
  );
}

async function text(url: string, body?: string | Buffer, type = 'application/json'): Promise<string> {
  const init = body === undefined ? {} : { method: 'POST', headers: { 'content-type': type }, body };
  const response = await fetch(url, init);
  const received = await response.text();
  expect([url, response.status, received]).toEqual([url, expect.toSatisfy((status) => status < 300), received]);
  return received;
}

/** The JSON text of a run with the numbers in its inputs and its metadata. */
function recordOf(name: string, list: string): string {
  const id = randomUUID();
  const order = `20261120T072240123456Z${id}`;
  const run = makeRun({ id, trace_id: id, dotted_order: order, name, inputs: 0, extra: { metadata: 0 } });
  return JSON.stringify(run).replace(/"(inputs|metadata)":0/g, `"$1":{"order":${list}}`);
}

const WAYS_IN: Readonly<Record<string, (url: string, name: string, list: string) => Promise<unknown>>> = {
  simple: (url, name, list) => text(`${url}/runs`, recordOf(name, list)),
  batch: (url, name, list) => text(`${url}/runs/batch`, `{"post":[${recordOf(name, list)}]}`),
  import: (url, name, list) => text(`${url}/query/import`, recordOf(name, list), 'application/jsonl'),
  multipart: (url, name, list) => {
    const record = recordOf(name, list);
    const { id } = JSON.parse(record);
    const inputs = part(`post.${id}.inputs`, Buffer.from(`{"order":${list}}`));
    const body = multipart(part(`post.${id}`, Buffer.from(record.replace(/"inputs":{.*?},/, ''))), inputs);
    return text(`${url}/runs/multipart`, body, `multipart/form-data; boundary=${BOUNDARY}`);
  },
  spans: (url, name, list) => {
    const stringValue = `{"order":${list}}`;
    const attributes = ['input.value', 'metadata'].map((key) => ({ key, value: { stringValue } }));
    const ids = { traceId: randomUUID().replaceAll('-', ''), spanId: randomUUID().slice(19).replace('-', '') };
    const [startTimeUnixNano, endTimeUnixNano] = ['1795159360123456000', '1795159361123456000'];
    const span = { ...ids, name, startTimeUnixNano, endTimeUnixNano, attributes };
    return text(`${url}/v1/traces`, JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }));
  },
};

/** Sends numbers on every way into a receiver and reads them on every way out. */
export async function expectExactNumbers(store: Store): Promise<void> {
  const [receiver, other] = [await startReceiver({ store }), await startReceiver()] as const;
  const property = fc.asyncProperty(numbers, async (sent) => {
    for (const [way, send] of Object.entries(WAYS_IN)) {
      const name = `${way}-${randomUUID()}`;
      await send(receiver.url, name, `[${sent.join(',')}]`);
      for (const [out, found] of Object.entries(await readEverywhere(receiver, other, name)))
        expect([way, out, ...new Set(listsIn(found).map(String))]).toEqual([way, out, sent.map(exactly).join()]);
    }
  });
  await fc.assert(property, { numRuns: cases(15) });
  await text(`${receiver.url}/runs`, recordOf('one', '107505301260286111'));
  for (const filter of ['107505301260286111', 'meta.order:107505301260286111']) {
    const found = await Promise.all(
      [filter, filter.replace(/1$/, '2')].map((one) => text(`${receiver.url}/query/runs?filter=${one}`)),
    );
    expect([filter, ...found.map((page) => JSON.parse(page).items.length)]).toEqual([filter, 1, 0]);
  }
}

/** Returns what a receiver answers about a run, and what another receiver answers that has imported it. */
async function readEverywhere({ url }: Receiver, other: Receiver, name: string): Promise<Record<string, string>> {
  const filter = `filter=name:${name}`;
  const { id, trace_id: trace } = JSON.parse(await text(`${url}/query/runs?${filter}`)).items[0];
  const inputs = await text(`${url}/query/runs/${id}/inputs`);
  await text(`${url}/query/feedback`, `{"run_id":"${id}","key":"k","value":${inputs}}`);
  const exported = await text(`${url}/query/traces/${trace}/export`);
  const spans = await text(`${url}/query/export?format=otlp&${filter}`);
  await text(`${other.url}/query/import`, exported);
  const imported = await text(`${other.url}/query/export?format=jsonl&${filter}`);
  await text(`${other.url}/v1/traces`, spans);
  return {
    run: await text(`${url}/query/runs/${id}`),
    inputs,
    file: await text(`${url}/query/traces/${trace}/export?format=html`),
    lines: await text(`${url}/query/export?format=jsonl&${filter}`),
    langSmith: await text(`${url}/runs/query`, JSON.stringify({ id: [id] })),
    exported,
    spans,
    imported,
    importedSpans: await text(`${other.url}/query/export?format=jsonl&${filter}`),
  };
}
