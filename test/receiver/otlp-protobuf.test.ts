import fc from 'fast-check';
import Pbf from 'pbf';
import { describe, expect, test } from 'vitest';
import { VALUES_MAX } from '#src/receiver/http/json.ts';
import { readOtlpLogs } from '#src/receiver/ingest/otlp-logs.ts';
import { protobufResponse, protobufStatus, readProtobufRequest } from '#src/receiver/ingest/otlp-protobuf.ts';
import { readOtlpSpans } from '#src/receiver/ingest/otlp-spans.ts';
import { forAllAsync } from '../support/campaign.ts';

function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content);
  const pbf = new Pbf();
  pbf.writeVarint((number << 3) | 2);
  pbf.writeVarint(bytes.length);
  return Buffer.concat([pbf.finish(), bytes]);
}

const inSpan = (...fields: Buffer[]) => field(1, field(2, field(2, Buffer.concat(fields))));
const spanOf = async (...fields: Buffer[]) => {
  type Read = { resourceSpans: { scopeSpans: { spans: unknown[] }[] }[] };
  const read = (await readProtobufRequest(inSpan(...fields), 'ExportTraceServiceRequest')) as Read;
  return read.resourceSpans[0]?.scopeSpans[0]?.spans[0];
};
const attribute = (key: string, value: Buffer) => field(9, Buffer.concat([field(1, key), field(2, value)]));
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const refused = (status: number) => expect.objectContaining({ status });

describe('a request', () => {
  // Encoded by hand from the field numbers of trace.proto. 39 and 41 are fixed64, 85 01 is fixed32.
  test('is converted to the JSON form', async () => {
    const span = await spanOf(
      field(1, hex('5b8efff798038103d269b633813fc60c')),
      field(2, hex('eee19b7ec3c1b174')),
      field(4, hex('eee19b7ec3c1b173')),
      field(5, 'answer'),
      hex('30 03'),
      hex('39 15 cd 5b 07 00 00 00 00'),
      hex('41 ff ff ff ff ff ff ff 7f'),
      attribute('a', field(1, 'b')),
      attribute('n', hex('18 ff ff ff ff ff ff ff ff ff 01')),
      attribute('max', hex('18 ff ff ff ff ff ff ff ff 7f')),
      attribute('min', hex('18 80 80 80 80 80 80 80 80 80 01')),
      attribute('d', hex('21 00 00 00 00 00 00 e0 3f')),
      attribute('list', field(5, field(1, hex('10 01')))),
      attribute('map', field(6, field(1, Buffer.concat([field(1, 'k'), field(2, field(7, hex('00ff')))])))),
      hex('50 01 60 02 70 03'),
      field(11, Buffer.concat([hex('09 01 00 00 00 00 00 00 00'), field(2, 'retry')])),
      field(13, Buffer.concat([field(1, hex('5b8efff798038103d269b633813fc60c')), field(2, hex('eee19b7ec3c1b174'))])),
      field(15, Buffer.concat([field(2, 'no'), hex('18 02')])),
      hex('85 01 01 03 00 00'),
    );
    expect(span).toEqual({
      traceId: '5b8efff798038103d269b633813fc60c',
      spanId: 'eee19b7ec3c1b174',
      parentSpanId: 'eee19b7ec3c1b173',
      name: 'answer',
      kind: 3,
      startTimeUnixNano: 123_456_789n,
      endTimeUnixNano: 9_223_372_036_854_775_807n,
      attributes: [
        { key: 'a', value: { stringValue: 'b' } },
        { key: 'n', value: { intValue: -1 } },
        { key: 'max', value: { intValue: 9223372036854775807n } },
        { key: 'min', value: { intValue: -9223372036854775808n } },
        { key: 'd', value: { doubleValue: 0.5 } },
        { key: 'list', value: { arrayValue: { values: [{ boolValue: true }] } } },
        {
          key: 'map',
          value: { kvlistValue: { values: [{ key: 'k', value: { bytesValue: Uint8Array.of(0, 255) } }] } },
        },
      ],
      droppedAttributesCount: 1,
      droppedEventsCount: 2,
      droppedLinksCount: 3,
      events: [{ timeUnixNano: 1n, name: 'retry' }],
      links: [{ traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' }],
      status: { message: 'no', code: 2 },
      flags: 0x301,
    });
  });

  test('may be empty, and may have unknown fields and fields of another wire type', async () => {
    expect(await readProtobufRequest(Buffer.alloc(0), 'ExportTraceServiceRequest')).toEqual({});
    expect(await spanOf(field(99, 'x'), hex('28 05'), field(6, 'x'), field(5, 'answer'))).toEqual({ name: 'answer' });
  });

  test('that has only the former list of scopes is refused', async () => {
    const bytes = field(1, Buffer.concat([field(1, ''), field(1000, field(2, 'a span'))]));
    const read = (signal: string) => readProtobufRequest(bytes, `Export${signal}ServiceRequest`);
    const detail = /^Expected `scope(Spans|Logs)`, got `instrumentation_library_\* \(field 1000\)`/;
    await expect(readOtlpSpans(await read('Trace'))).rejects.toThrow(detail);
    await expect(readOtlpLogs(await read('Logs'))).rejects.toThrow(detail);
  });

  test('may be a view at any offset', async () => {
    const request = inSpan(hex('39 15 cd 5b 07 00 00 00 00'));
    for (const before of [1, 7, 8]) {
      const view = Buffer.concat([Buffer.alloc(before), request]).subarray(before);
      const spans = [{ startTimeUnixNano: 123_456_789n }];
      expect(await readProtobufRequest(view, 'ExportTraceServiceRequest')).toEqual({
        resourceSpans: [{ scopeSpans: [{ spans }] }],
      });
    }
  });

  test('that is cut within a message is refused', async () => {
    const first = inSpan(field(5, 'answer'), hex('39 15 cd 5b 07 00 00 00 00'));
    const request = Buffer.concat([first, inSpan(field(5, 'b'))]);
    for (let length = 1; length < request.length; length += 1) {
      const reading = readProtobufRequest(request.subarray(0, length), 'ExportTraceServiceRequest');
      if (length === first.length) await reading;
      else await expect(reading, `cut at ${length}`).rejects.toThrow(refused(400));
    }
  });

  test.each([
    ['a length beyond its end', hex('0a ff ff ff ff 07')],
    ['a length of eight bytes', hex('0a ff ff ff ff ff ff ff 7f 00')],
    ['a length without end', Buffer.alloc(20, 0xff)],
    ['a length that goes beyond the message around it', hex('0a 02 12 7f 00')],
    ['a group', hex('0b 0c')],
    ['a field that is passed over and has no end', hex('9a 06 ff ff 03')],
    ['JSON', Buffer.from('{"resourceSpans":[]}')],
  ])('with %s is refused', async (_, bytes) => {
    await expect(readProtobufRequest(bytes, 'ExportTraceServiceRequest')).rejects.toThrow(refused(400));
  });

  test('may have 200 levels, and as many values as JSON [security 9]', async () => {
    const nested = (levels: number) => {
      let value = field(1, 'x');
      // A list and its value are two levels.
      for (let level = 0; level < levels; level += 1) value = field(5, field(1, value));
      return inSpan(field(9, field(2, value)));
    };
    await readProtobufRequest(nested(97), 'ExportTraceServiceRequest');
    for (const levels of [98, 5_000])
      await expect(readProtobufRequest(nested(levels), 'ExportTraceServiceRequest')).rejects.toThrow(refused(400));
    // The span, its scope and its resource are values too. Empty names are read faster than messages.
    const named = (names: number) =>
      readProtobufRequest(inSpan(Buffer.alloc(2 * names, hex('2a00'))), 'ExportTraceServiceRequest');
    await named(VALUES_MAX - 3);
    await expect(named(VALUES_MAX - 2)).rejects.toThrow(refused(413));
  });

  test('of any bytes is converted or refused', async () => {
    const whole = inSpan(field(5, 'answer'), attribute('a', field(1, 'b')));
    const mutated = fc
      .tuple(fc.nat(whole.length - 1), fc.uint8Array({ maxLength: 4 }))
      .map(([at, put]) => Buffer.concat([whole.subarray(0, at), put, whole.subarray(at + put.length)]));
    const bytes = fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array));
    await forAllAsync(2_000, [fc.oneof(bytes, mutated)], async (body) => {
      await readProtobufRequest(body, 'ExportTraceServiceRequest').catch((error) =>
        expect(error).toMatchObject({ status: 400 }),
      );
    });
  });
});

test('responses are encoded as the protocol defines', async () => {
  expect(Buffer.from(await protobufResponse(0, ''))).toEqual(Buffer.alloc(0));
  expect(Buffer.from(await protobufResponse(3, 'no'))).toEqual(hex('0a 06 08 03 12 02 6e 6f'));
  expect(Buffer.from(await protobufStatus('no'))).toEqual(hex('12 02 6e 6f'));
});
