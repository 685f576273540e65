import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import * as timers from '../../src/base/timers.ts';
import type { Item } from '../../src/export/delivery.ts';
import { encodeMultipart } from '../../src/export/multipart.ts';
import { readByBusboy } from '../support/busboy-reader.ts';
import { ended, makeItem, makeRun } from '../support/encoded-run.ts';
import { readJsonParts, readParts } from '../support/multipart-reader.ts';

const ROOT = '01900000-0000-7000-8000-000000000001';
const CHILD = '01900000-0000-7000-8000-000000000002';
const BOUNDARY = 'runspan-0123456789abcdef';

const encoded = (items: readonly Item[]) => encodeMultipart(items, BOUNDARY, new AbortController().signal);
const request = (chunks: readonly Uint8Array[], boundary = BOUNDARY) => ({
  headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  body: Buffer.concat(chunks),
});

describe('encodeMultipart', () => {
  it('encodes a run as main part, inputs and outputs, byte for byte', async () => {
    const run = ended(makeRun({ id: ROOT, name: 'ask', inputs: '{"q":"ä"}', outputs: '{"a":1}', project: 'docs' }), {
      endTime: '2026-01-02T03:04:05.700000Z',
    });
    const main =
      `{"id":"${ROOT}","trace_id":"${ROOT}","name":"ask","start_time":"${run.startTime}","run_type":"chain",` +
      `"dotted_order":"${run.dottedOrder}","session_name":"docs","end_time":"2026-01-02T03:04:05.700000Z"}`;
    const part = (name: string, length: number, body: string) =>
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${length}\r\n\r\n${body}\r\n`;
    const expected =
      part(`post.${ROOT}`, main.length, main) +
      part(`post.${ROOT}.inputs`, 10, '{"q":"ä"}') +
      part(`post.${ROOT}.outputs`, 7, '{"a":1}') +
      `--${BOUNDARY}--\r\n`;

    expect(Buffer.concat(await encoded([makeItem(run)])).toString('utf8')).toBe(expected);
  });

  it('sends no part for empty payloads', async () => {
    const run = ended(makeRun({ id: ROOT, inputs: '{}', outputs: '{}', events: '[]' }));

    expect(readParts(request(await encoded([makeItem(run)]))).map(({ name }) => name)).toEqual([`post.${ROOT}`]);
  });

  it('leaves the end out of a post that was taken while the run was open', async () => {
    const run = makeRun({ id: ROOT, inputs: '{"q":1}' });
    const item = makeItem(run, 'started');
    ended(run, { outputs: '{"a":1}', error: 'Error: late' });
    const parts = readJsonParts(request(await encoded([item])));

    expect([...parts.keys()]).toEqual([`post.${ROOT}`, `post.${ROOT}.inputs`]);
    expect(parts.get(`post.${ROOT}`)).not.toHaveProperty('end_time');
    expect(parts.get(`post.${ROOT}`)).not.toHaveProperty('error');
  });

  it('repeats in a patch all that lets it stand alone, and not the inputs', async () => {
    const parent = makeRun({ id: ROOT });
    const run = ended(makeRun({ id: CHILD, name: 'search', runType: 'retriever' }, parent), { outputs: '{"a":1}' });
    const parts = readJsonParts(request(await encoded([makeItem(run, 'patch')])));

    expect([...parts.keys()]).toEqual([`patch.${CHILD}`, `patch.${CHILD}.outputs`]);
    expect(parts.get(`patch.${CHILD}`)).toEqual({
      id: CHILD,
      trace_id: ROOT,
      dotted_order: run.dottedOrder,
      parent_run_id: ROOT,
      name: 'search',
      run_type: 'retriever',
      start_time: run.startTime,
      end_time: '2026-01-02T03:04:06.000000Z',
      session_name: 'default',
    });
  });

  it('keeps error, tags and metadata in the main part', async () => {
    const run = ended(
      makeRun({ id: ROOT, tags: ['a'], metadata: new Map([['k"ey', '{"n":1}']]), runtime: '{"r":1}' }),
      {
        error: 'Error: "no"\n    at x',
      },
    );
    const parts = readJsonParts(request(await encoded([makeItem(run)])));

    expect(parts.get(`post.${ROOT}`)).toMatchObject({
      error: 'Error: "no"\n    at x',
      tags: ['a'],
      extra: { metadata: { 'k"ey': { n: 1 } }, runtime: { r: 1 } },
    });
  });

  it('frames attachments under the same boundary, with their own type and length, and does not copy them', async () => {
    const bytes = Buffer.alloc(100_000, 7);
    const run = ended(makeRun({ id: ROOT, attachments: [{ name: 'a "b"', bytes, mimeType: 'image/png' }] }));
    const chunks = await encoded([makeItem(run)]);
    const [, attachment] = readParts(request(chunks));

    expect(chunks).toContain(bytes);
    expect(attachment).toMatchObject({ name: `attachment.${ROOT}.a %22b%22`, filename: 'a %22b%22' });
    expect(attachment?.headers).toMatchObject({ 'content-type': 'image/png', 'content-length': '100000' });
    expect(attachment?.body.equals(bytes)).toBe(true);
  });

  it('puts a marker in the place of payloads that were too large, and leaves attachments out', async () => {
    const attachments = [{ name: 'a', bytes: Buffer.from('x'), mimeType: 'text/plain' }];
    const item = makeItem(ended(makeRun({ id: ROOT, inputs: '{"q":1}', attachments }), { outputs: '{"a":1}' }));
    item.stripped = 'payloads';
    const parts = readJsonParts(request(await encoded([item])));

    expect([...parts.keys()]).toEqual([`post.${ROOT}`, `post.${ROOT}.inputs`, `post.${ROOT}.outputs`]);
    expect(parts.get(`post.${ROOT}.inputs`)).toEqual({ runspan: 'left out: the service found this run too large' });
  });

  it.each([
    [1, 0],
    [2, 0],
    [3, 1],
    [20, 9],
  ])('of %i MB gives the application %i turns in between [fault 42]', async (megabytes, turns) => {
    const soon = vi.spyOn(timers, 'setSoon');
    onTestFinished(() => void vi.restoreAllMocks());
    const inputs = JSON.stringify('x'.repeat(1024 * 1024));
    const items = Array.from({ length: megabytes }, () => makeItem(ended(makeRun({ inputs }))));
    const { body } = request(await encoded(items));

    expect(soon).toHaveBeenCalledTimes(turns);
    expect(body.toString('latin1').split(inputs)).toHaveLength(megabytes + 1);
  });

  it.each([
    ['a', 300_000],
    ['ä', 300_000],
    ['你', 300_000],
    ['😀', 300_000],
    // 995 characters in 1 323 bytes: the length has another number of digits.
    ['aaaaaaaaaäé你', 82],
  ])('carries %s, repeated %i times', async (text, times) => {
    const inputs = JSON.stringify({ text: text.repeat(times) });
    const parts = readJsonParts(request(await encoded([makeItem(ended(makeRun({ id: ROOT, inputs })))])));

    expect(parts.get(`post.${ROOT}.inputs`)).toEqual(JSON.parse(inputs));
  });

  it('carries any text in any field, also one that looks like the boundary', async () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constant(`\r\n--${BOUNDARY}--\r\n`));
    await fc.assert(
      fc.asyncProperty(text, text, async (name, payload) => {
        const run = ended(makeRun({ id: ROOT, name, inputs: JSON.stringify({ payload }) }));
        const parts = readJsonParts(request(await encoded([makeItem(run)])));
        expect(parts.get(`post.${ROOT}`)?.name).toBe(name);
        expect(parts.get(`post.${ROOT}.inputs`)).toEqual({ payload });
      }),
      { numRuns: 300 },
    );
  });

  it('is read the same by an independent parser', async () => {
    const runs = [1, 2, 3].map((n) => ended(makeRun({ inputs: `{"n":${n},"t":"ü€😀"}` }), { outputs: '{"ok":true}' }));
    const body = request(await encoded(runs.map((run) => makeItem(run))));
    const ours = readParts(body).map((part) => [part.name, part.headers['content-type'], part.body.toString('utf8')]);

    expect((await readByBusboy(body)).map(({ name, mimeType, body: text }) => [name, mimeType, `${text}`])).toEqual(
      ours,
    );
  });
});
