import { describe, expect, it } from 'vitest';
import { Arrivals } from '../../bench/sink/arrivals.mjs';
import { readRows } from '../../bench/sink/logs3-reader.mjs';
import { readParts } from '../../bench/sink/multipart-reader.mjs';
import { readJsonSpans, readProtobufSpans } from '../../bench/sink/otlp-reader.mjs';

type Reader = (body: Buffer, arrivals: Arrivals) => void;

const ID = '019a9f8e-0d3c-7000-8000-000000000001';
const OTHER = '019a9f8e-0d3c-7000-8000-000000000002';

const arrived = (read: Reader, ...bodies: Buffer[]): Arrivals['summary'] => {
  const arrivals = new Arrivals();
  for (const body of bodies) read(body, arrivals);
  return arrivals.summary;
};

describe('a multipart body', () => {
  const part = (name: string, text: string): string =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}\r\n`;
  const body = (...parts: string[]): Buffer => Buffer.from(`${parts.join('')}--b--\r\n`);

  it('has starts and ends, whatever payloads say', () => {
    const tricky = '{"text":"\\r\\n\\r\\n--b \\"end_time\\":\\"2026\\" ü"}';
    const summary = arrived(
      readParts,
      body(
        part(`post.${ID}`, '{"name":"a","end_time":"2026-11-20"}'),
        part(`post.${ID}.inputs`, tricky),
        part(`post.${OTHER}`, '{"name":"b","end_time":null}'),
      ),
    );
    expect(summary).toMatchObject({ posted: 2, complete: 1, endRecords: 1, malformed: 0 });
    expect(summary.payloadBytes).toBe(Buffer.byteLength(tricky));
  });

  it('is read as langsmith lays it, which says the length beside the type', () => {
    const text = '{"end_time":1763600000000}';
    const laid = `--b\r\nContent-Disposition: form-data; name="patch.${ID}"\r\nContent-Type: application/json; length=${text.length}\r\n\r\n${text}\r\n--b--\r\n`;
    expect(arrived(readParts, Buffer.from(laid))).toMatchObject({ posted: 0, endRecords: 1, malformed: 0 });
  });

  it('is told when a part does not say its length', () => {
    const laid = `--b\r\nContent-Disposition: form-data; name="post.${ID}"\r\n\r\n{}\r\n--b--\r\n`;
    expect(arrived(readParts, Buffer.from(laid)).malformed).toBe(1);
  });
});

describe('spans', () => {
  it('of JSON are found by their ids, not by those of parents and of texts', () => {
    const text = JSON.stringify({ spanId: 'ffffffffffffffff' });
    const spans = [{ traceId: 'a'.repeat(32), spanId: '0123456789abcdef', parentSpanId: '1'.repeat(16), name: text }];
    const body = Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }));
    expect(arrived(readJsonSpans, body, body)).toMatchObject({ posted: 1, complete: 1, endRecords: 2 });
  });

  it('of protobuf are found by the way of their fields', () => {
    const field = (number: number, content: Buffer): Buffer =>
      Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), content]);
    const span = Buffer.concat([
      field(1, Buffer.alloc(16, 1)),
      field(2, Buffer.alloc(8, 2)),
      field(4, Buffer.alloc(8, 3)),
    ]);
    const body = field(1, field(2, Buffer.concat([field(2, span), field(2, span)])));
    expect(arrived(readProtobufSpans, body)).toMatchObject({ posted: 1, complete: 1, endRecords: 2 });
  });
});

it('rows of braintrust tell of one span together', () => {
  const body = (...rows: object[]): Buffer => Buffer.from(JSON.stringify({ rows, api_version: 2 }));
  const first = { id: ID, _is_merge: false, metrics: { start: 1 }, input: ['question'] };
  const last = { id: ID, _is_merge: true, metrics: { end: 2 }, output: 'answer' };
  expect(arrived(readRows, body(first))).toMatchObject({ posted: 1, complete: 0 });
  expect(arrived(readRows, body(first), body(last))).toMatchObject({ posted: 1, complete: 1, endRecords: 1 });
});
