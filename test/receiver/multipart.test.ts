import { Readable } from 'node:stream';
import { FormDataEncoder } from 'form-data-encoder';
import { FormData } from 'undici';
import { describe, expect, test } from 'vitest';
import { boundaryOf, MultipartReader, PART_NAME_BYTES_MAX, PARTS_MAX } from '../../src/receiver/ingest/multipart.ts';
import { BOUNDARY, makeRun, multipart, part, ROOT, raw, readParts, sendMultipart, start } from './wire.ts';

const read = async (body: Buffer, strict = false) => readParts(body, BOUNDARY, strict);
const texts = async (body: Buffer) => (await read(body)).map(({ bytes }) => Buffer.from(bytes).toString());

describe('readParts', () => {
  test('gives name, headers and bytes of every part, in order', async () => {
    const body = [
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="post.1"\r\nContent-Type: application/json\r\n`,
      `Content-Length: 2\r\n\r\n{}\r\n`,
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name=plain; filename="a b.txt"\r\n\r\nnot json\r\n`,
      `--${BOUNDARY}--\r\n`,
    ].join('');
    const parts = await read(Buffer.from(body));
    expect(parts.map((each) => ({ ...each, bytes: Buffer.from(each.bytes).toString() }))).toEqual([
      { name: 'post.1', contentType: 'application/json', contentLength: '2', hasFilename: false, bytes: '{}' },
      { name: 'plain', contentType: undefined, contentLength: undefined, hasFilename: true, bytes: 'not json' },
    ]);
  });

  test('gives the bytes as they are, whatever charset, filename or line breaks they have', async () => {
    const bytes = Buffer.from(Array.from({ length: 1024 }, (_, index) => index % 256));
    const withCrlf = Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}\r\n\r\n--\r\n`);
    const parts = await read(
      multipart(
        part('a', bytes, ['Content-Type: text/plain; charset=utf-16le']),
        part('b"; filename="b.bin', bytes, ['Content-Type: application/octet-stream']),
        part('c', withCrlf),
      ),
    );
    expect(parts.map((each) => Buffer.from(each.bytes))).toEqual([bytes, bytes, withCrlf]);
    expect(parts[1]?.name).toBe('b');
  });

  test('gives empty parts too, at the start, in the middle and at the end', async () => {
    const empty = Buffer.alloc(0);
    expect(await texts(multipart(part('a', empty), part('b', 1), part('c', empty), part('d', empty)))).toEqual([
      '',
      '1',
      '',
      '',
    ]);
  });

  test('reads what form-data-encoder writes, names with quotes and line breaks included', async () => {
    const form = new FormData();
    form.set('attachment.1.größe "a"\r\n.txt', new File(['grün'], 'x.txt', { type: 'text/plain' }));
    const encoder = new FormDataEncoder(form, BOUNDARY);
    const body = Buffer.concat(
      await Readable.from(encoder.encode())
        .map((chunk) => Buffer.from(chunk))
        .toArray(),
    );
    const [only] = await read(body);
    expect(only?.name).toBe('attachment.1.größe "a"\r\n.txt');
    expect(Buffer.from(only?.bytes ?? []).toString()).toBe('grün');
  });

  test('passes over what stands before the first and after the last boundary', async () => {
    const body = Buffer.concat([
      Buffer.from('hello\r\n'),
      multipart(part('a', 1)),
      Buffer.from(`bye\r\n--${BOUNDARY}\r\n`),
    ]);
    expect(await texts(body)).toEqual(['1']);
  });

  test('accepts a preamble of 64 KiB and refuses a longer one before the rest of the body arrives', async () => {
    const receiver = await start();
    const preamble = (bytes: number) => Buffer.from(`${'x'.repeat(bytes - 2)}\r\n`);
    const body = multipart(part(`post.${ROOT}`, makeRun()));
    const send = (bytes: number) => sendMultipart(receiver, Buffer.concat([preamble(bytes), body]));
    expect((await send(64 * 1024)).status).toBe(202);
    expect(await send(64 * 1024 + 1)).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('65536') },
    });
    const head = [
      'POST /runs/multipart HTTP/1.1',
      `Host: ${new URL(receiver.url).host}`,
      `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
      'Content-Length: 10000000',
      'Connection: close',
    ].join('\r\n');
    const reply = await raw(receiver.url, `${head}\r\n\r\n${'\r\n--runspan'.repeat(8_000)}`);
    expect(reply).toMatch(/^HTTP\/1.1 400 /);
  });

  test('takes nothing around the parts in strict mode but a line break at the end', async () => {
    const body = multipart(part('a', 1), part('b', Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}--\r\n`)));
    const end = body.length - '\r\n'.length;
    expect(await read(body, true)).toHaveLength(2);
    expect(await read(body.subarray(0, end), true)).toHaveLength(2);
    const put = (before: string, after: string) =>
      read(Buffer.concat([Buffer.from(before), body.subarray(0, end), Buffer.from(after)]), true);
    const delimiter = `\r\n--${BOUNDARY}`;
    for (const before of ['x', '\r\n', 'hello\r\n', `--${BOUNDARY}x\r\n`.slice(1)]) {
      await expect(put(before, ''), before).rejects.toMatchObject({ status: 400 });
    }
    for (const after of ['x', '\r\nx', '-', '\n', `${delimiter}--`, `${delimiter}\r\n\r\n${delimiter}--\r\n`]) {
      await expect(put('', after), after).rejects.toMatchObject({ status: 400 });
    }
    await expect(read(Buffer.from(''), true)).rejects.toMatchObject({ status: 400 });
    await expect(read(body.subarray(0, 200), true)).rejects.toMatchObject({ status: 400 });
  });

  test.each(['Content-Disposition: form-data; name="b"', 'Content-Length: 1', 'content-type: text/plain'])(
    'refuses a part that has this header twice: %s',
    async (header) => {
      const lines = ['Content-Type: application/json', 'Content-Length: 1', header];
      await expect(read(multipart(part('a', 1, lines)))).rejects.toMatchObject({
        status: 400,
        detail: expect.stringMatching(/^Part 1 has two headers content-/),
      });
    },
  );

  test('refuses a body that is cut short, wherever it is cut', async () => {
    const body = multipart(part('post.1', { a: 1 }), part('post.1.inputs', { b: 2 }));
    const whole = body.length - '\r\n'.length;
    for (let length = 0; length < whole; length += 1) {
      await expect(read(body.subarray(0, length)), `cut at ${length}`).rejects.toMatchObject({ status: 400 });
    }
    expect(await texts(body.subarray(0, whole))).toHaveLength(2);
    await expect(read(body.subarray(0, whole - 10))).rejects.toMatchObject({
      detail: 'Unexpected end of multipart data in part 2, post.1.inputs',
    });
  });

  test.each([
    ['no Content-Disposition', Buffer.from(`--${BOUNDARY}\r\nContent-Type: application/json\r\n\r\n{}\r\n`)],
    ['no name', Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data\r\n\r\n{}\r\n`)],
    [
      'an attachment disposition',
      Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: attachment; name="a"\r\n\r\n{}\r\n`),
    ],
    [
      'a quote that is not closed',
      Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="a\r\n\r\n{}\r\n`),
    ],
    ['no header at all', Buffer.from(`--${BOUNDARY}\r\n\r\n{}\r\n`)],
    ['a header that does not end', Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n`)],
  ])('refuses a part with %s, and says which part', async (_, second) => {
    await expect(read(multipart(part('a', 1), second))).rejects.toMatchObject({
      status: 400,
      detail: 'Part 2 has no Content-Disposition of the form: form-data; name="…"',
    });
  });

  test('refuses transfer encodings, which would leave the payload encoded', async () => {
    const body = multipart(part('a', 1, ['Content-Transfer-Encoding: base64']));
    await expect(read(body)).rejects.toMatchObject({ status: 400, detail: expect.stringContaining('"base64"') });
  });

  test('takes so many parts and no more', async () => {
    const parts = (count: number) =>
      multipart(...Array.from({ length: count }, (_, index) => part(`p${index}`, index)));
    expect(await read(parts(PARTS_MAX - 1))).toHaveLength(PARTS_MAX - 1);
    expect(await read(parts(PARTS_MAX))).toHaveLength(PARTS_MAX);
    await expect(read(parts(PARTS_MAX + 1))).rejects.toMatchObject({ status: 413 });
  });

  test('refuses what is too much as soon as it comes', () => {
    const written = (body: Buffer) => new MultipartReader(BOUNDARY, false).write(body);
    const parts = Array.from({ length: PARTS_MAX }, () => part('x', 1));
    const header = (bytes: number) => Buffer.from(`--${BOUNDARY}\r\n${'x'.repeat(bytes - '\r\n'.length)}`);
    written(Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}`)]));
    written(header(16_384));
    const refused = (status: number) => expect.objectContaining({ status });
    expect(() => written(Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}\r\n`)]))).toThrow(refused(413));
    expect(() => written(header(16_385))).toThrow(refused(400));
    const named = part('n'.repeat(PART_NAME_BYTES_MAX + 1), 1);
    expect(() => written(named.subarray(0, named.indexOf('\r\n\r\n') + 4))).toThrow(refused(400));
  });

  test('takes 50 lines of a header and no more', async () => {
    const lines = (count: number) =>
      part(
        'a',
        1,
        Array.from({ length: count - 1 }, (_, n) => `X-${n}: 1`),
      );
    expect(await read(multipart(lines(49)))).toHaveLength(1);
    expect(await read(multipart(lines(50)))).toHaveLength(1);
    await expect(read(multipart(lines(51)))).rejects.toMatchObject({
      status: 400,
      detail: 'The header of part 1 has more than 50 lines',
    });
  });

  test('reads header lines that go on in the next, and spaces behind a delimiter', async () => {
    const body = `--${BOUNDARY} \t\r\nContent-Disposition: form-data;\r\n\tname="a"\r\n\r\n1\r\n--${BOUNDARY}--`;
    expect((await read(Buffer.from(body), true)).map(({ name }) => name)).toEqual(['a']);
  });

  test('takes a part without bytes that leaves its line break to the delimiter', async () => {
    const body = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\n--${BOUNDARY}--`;
    expect(await texts(Buffer.from(body))).toEqual(['']);
  });

  test.each(['no colon', ': no name', ' goes on with nothing', 'X: a\rb', 'X: a\nY: b'])(
    'refuses a header with the line %j',
    async (line) => {
      const body = `--${BOUNDARY}\r\n${line}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--${BOUNDARY}--`;
      await expect(read(Buffer.from(body))).rejects.toMatchObject({
        status: 400,
        detail: 'The header of part 1 cannot be read',
      });
    },
  );

  test('does not count what looks like parts after the last boundary', async () => {
    const after = Buffer.from(`\r\n--${BOUNDARY}\r\n`.repeat(PARTS_MAX + 1));
    expect(await texts(Buffer.concat([multipart(part('a', 1)), after]))).toEqual(['1']);
  });

  test('takes names so long and no longer', async () => {
    const named = (length: number) => read(multipart(part('n'.repeat(length), 1)));
    expect(await named(PART_NAME_BYTES_MAX)).toHaveLength(1);
    await expect(named(PART_NAME_BYTES_MAX + 1)).rejects.toMatchObject({ status: 400 });
    await expect(named(20_000)).rejects.toMatchObject({ status: 400 });
  });
});

describe('boundaryOf', () => {
  test.each([
    ['multipart/form-data; boundary=abc', 'abc'],
    ['multipart/form-data;boundary="a b"', 'a b'],
    ['Multipart/Form-Data; charset=utf-8; Boundary=abc; x=y', 'abc'],
    [`multipart/form-data; boundary=${'b'.repeat(70)}`, 'b'.repeat(70)],
  ])('reads %s', (header, boundary) => {
    expect(boundaryOf(header)).toBe(boundary);
  });

  test.each([
    [undefined, 415],
    ['application/json', 415],
    ['multipart/mixed; boundary=abc', 415],
    ['multipart/form-data', 400],
    ['multipart/form-data; boundary=', 400],
    ['multipart/form-data; boundary=""', 400],
    [`multipart/form-data; boundary=${'b'.repeat(71)}`, 400],
  ])('refuses %s with %i', (header, status) => {
    expect(() => boundaryOf(header)).toThrow(expect.objectContaining({ status }));
  });
});
