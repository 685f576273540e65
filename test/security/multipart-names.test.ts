import { ROOT_CONTEXT } from '@opentelemetry/api';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createExporter, type Exporter, fromHeaders, runIdFrom, startRun, withRun } from '#src/index.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { isMimeType } from '#src/payload/attachment.ts';
import { bareSpan } from '../support/bare-span.ts';
import { type BusboyPart, readByBusboy } from '../support/busboy-reader.ts';
import type { IngestServer, Received } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';
import { readParts } from '../support/multipart-reader.ts';
import { service } from './service.ts';

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** Matches all part names (rule 3 of the interface, and attachments). */
const GRAMMAR = new RegExp(
  `^(?:(?:post|patch)\\.${UUID}(?:\\.(?:inputs|outputs|events))?|attachment\\.${UUID}\\.[^.]+)$`,
  's',
);

async function set(): Promise<{ server: IngestServer; exporter: Exporter }> {
  const { server } = await service();
  const exporter = createExporter({ endpoint: server.url, limits: { lingerMs: 1 } });
  onTestFinished(async () => void (await exporter.close()));
  return { server, exporter };
}

/** Characters that are special in header lines, paths or names, among ordinary text. */
const hostile = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'"\r\n\0;=%\\/.:a é\u{1f511}\u0085\u2028', '..', '\ud800'), maxLength: 30 }),
  fc.constantFrom('x"; filename="y', 'x"\r\nContent-Type: text/html\r\n\r\nevil', '%22', '%0D%0A', '../../etc/hosts'),
  fc.string({ maxLength: 300 }),
);
const mime = fc.oneof(
  fc.constantFrom('image/png', 'text/plain; charset=utf-8', 'a/b\r\nx-evil: 1', 'text', '', 'a/b; c="\n"', 'é/é'),
  hostile,
);

const last = (server: IngestServer): Received => server.received.at(-1) as Received;
const named = (parts: readonly Pick<BusboyPart, 'name' | 'body'>[]) =>
  parts.map(({ name, body }) => [name, body.toString('latin1')]);

/** In RFC 822, which busboy follows, two backslashes are one. */
const alike = (parts: Parameters<typeof named>[0]) =>
  named(parts).map(([name = '', body]) => [name.replaceAll(/\\+/g, '\\'), body]);

/** Escapes the name of an attachment as the standard describes. */
function escaped(name: string): string {
  const marks: Record<string, string> = { '"': '%22', '\r': '%0D', '\n': '%0A', '\0': '%00' };
  const text = [...Buffer.from(name).toString()].map((letter) => marks[letter] ?? letter).join('');
  // Some parsers treat a backslash before the last quote as an escape.
  const [atEnd = ''] = /\\*$/.exec(text) ?? [];
  return text.slice(0, text.length - atEnd.length) + '%5C'.repeat(atEnd.length);
}

const fits = (name: string): boolean => name !== '' && name.length <= 256 && !name.includes('.');

interface Given {
  readonly text: string;
  readonly attachments: readonly (readonly [name: string, mime: string])[];
}

const given: fc.Arbitrary<Given> = fc.record({
  text: hostile,
  attachments: fc.array(fc.tuple(hostile, mime), { maxLength: 5 }),
});

/** Sends a run with these texts, and parses the request with two independent parsers. */
async function sent({ server, exporter }: Awaited<ReturnType<typeof set>>, { text, attachments }: Given) {
  const payload = { [text]: text };
  const names = { name: text, runType: text, project: text, tags: [text] };
  const run = startRun({ ...names, metadata: payload, inputs: payload, exporter });
  attachments.forEach(([name, type], index) => void run.attach(name, Buffer.from([index]), type));
  run.event(text, payload);
  run.end({ text });
  await exporter.flush();
  const request = last(server);
  return { run, byHand: readParts(request), byBusboy: await readByBusboy(request) };
}

async function check(parts: Awaited<ReturnType<typeof set>>, { text, attachments }: Given): Promise<void> {
  const { run, byHand, byBusboy } = await sent(parts, { text, attachments });
  expect(alike(byBusboy)).toEqual(alike(byHand));
  for (const { name } of byHand) expect(name).toMatch(GRAMMAR);
  const expected = new Map<string, number>();
  attachments.forEach(([name, type], index) => {
    if (fits(name) && isMimeType(type) && !expected.has(escaped(name))) expected.set(escaped(name), index);
  });
  const arrived = byHand.filter(({ name }) => name.startsWith('attachment.'));
  const prefix = `attachment.${run.id}.`;
  expect(arrived.map(({ name, body }) => [name, body[0]])).toEqual(
    [...expected].map(([name, index]) => [prefix + name, index]),
  );
  for (const { headers } of byHand) {
    const names = Object.keys(headers).sort();
    expect(names).toEqual(['content-disposition', 'content-length', 'content-type']);
    expect(Object.values(headers).join('')).not.toMatch(/[\r\n\0]/);
  }
}

describe('names and types in a request', () => {
  test('contain any text of a run and its attachments, and no text leaves its field [security 3]', async () => {
    const parts = await set();
    const names = ['ends in \\', '\\\\', 'a\0b', '"', 'a\r\nb', '%22', '\\"'];
    const attachmentsOf = (name: string): Given['attachments'] => [
      [name, 'text/plain'],
      ['last', 'a/b'],
    ];
    const examples: [Given][] = names.map((name) => [{ text: name, attachments: attachmentsOf(name) }]);
    await fc.assert(
      fc.asyncProperty(given, (texts) => check(parts, texts)),
      { examples },
    );
  });

  test('contain only UUIDs for any ids of spans, headers and callers [security 3]', async () => {
    const parts = await set();
    const processor = new RunSpanProcessor({ exporter: parts.exporter, shouldExport: 'all' });
    onTestFinished(() => processor.shutdown());
    await fc.assert(
      fc.asyncProperty(hostile, hostile, hostile, async (id, traceId, spanId) => {
        logLines();
        const before = parts.server.received.length;
        startRun({ name: 'given', id, exporter: parts.exporter }).end();
        startRun({ name: 'made', id: runIdFrom(id), exporter: parts.exporter }).end();
        const remote = fromHeaders({ 'runspan-trace': id, baggage: traceId });
        withRun(remote, () => startRun({ name: 'below', exporter: parts.exporter }).end());
        const span = bareSpan(id, { traceId, spanId }) as never;
        processor.onStart(span, ROOT_CONTEXT);
        processor.onEnd(span);
        await parts.exporter.flush();
        const names = parts.server.received
          .slice(before)
          .flatMap((request) => readParts(request).map(({ name }) => name));
        expect(names.length).toBeGreaterThan(3);
        for (const name of names) expect(name).toMatch(GRAMMAR);
      }),
      {
        examples: [
          ['x', '0'.repeat(32), 'a"\r\n'],
          ['x', '"'.repeat(32), '0'.repeat(16)],
        ],
      },
    );
  });
});

describe('a boundary', () => {
  const boundaryOf = ({ headers }: Received) => /boundary=(.*)$/.exec(headers['content-type'] ?? '')?.[1] ?? '';

  test('has 128 random bits and is different for each request', async () => {
    const { server, exporter } = await set();
    for (let round = 0; round < 50; round++) {
      startRun({ name: 'a', exporter }).end();
      await exporter.flush();
    }
    const boundaries = server.received.map(boundaryOf);
    expect(new Set(boundaries).size).toBe(50);
    for (const boundary of boundaries) expect(boundary).toMatch(/^runspan-[\da-f]{32}$/);
    // Each of the 128 bits is sometimes 0 and sometimes 1.
    const bits = boundaries.map((boundary) => BigInt(`0x${boundary.slice('runspan-'.length)}`));
    for (let bit = 0n; bit < 128n; bit++) expect(new Set(bits.map((all) => (all >> bit) & 1n)).size).toBe(2);
  });

  test('in a payload does not end a part', async () => {
    const parts = await set();
    let earlier = 'runspan-';
    for (let round = 0; round < 5; round++) {
      const text = `\r\n--${earlier}\r\nContent-Disposition: form-data; name="post.x"\r\n\r\n{}\r\n--${earlier}--\r\n`;
      const run = startRun({ name: text, inputs: { text }, exporter: parts.exporter });
      run.attach('bytes', Buffer.from(text), 'text/plain');
      run.end();
      await parts.exporter.flush();
      const request = last(parts.server);
      const byHand = readParts(request);
      expect(named(await readByBusboy(request))).toEqual(named(byHand));
      expect(byHand.map(({ name }) => name)).toEqual([
        `post.${run.id}`,
        `post.${run.id}.inputs`,
        `attachment.${run.id}.bytes`,
      ]);
      expect(byHand[2]?.body.toString()).toBe(text);
      earlier = boundaryOf(request);
    }
  });
});
