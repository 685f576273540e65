import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '#src/receiver.ts';
import { CHILD, call, makeRun, part, ROOT, sendParts, start } from './wire.ts';

const attachment = (name: string, bytes: Buffer, type: string) =>
  part(`attachment.${ROOT}.${name}`, bytes, [`Content-Type: ${type}`]);

test('an image is shown, and HTML is downloaded', async () => {
  const receiver = await start();
  const page = '<script>alert(1)</script>';
  await sendParts(
    receiver,
    part(`post.${ROOT}`, makeRun()),
    attachment('photo.png', Buffer.from([137, 80, 78, 71]), 'image/png'),
    attachment('../a/b.html', Buffer.from(page), 'text/html'),
  );
  const get = (name: string) => request(`${receiver.url}/query/runs/${ROOT}/attachments/${encodeURIComponent(name)}`);

  const photo = await get('photo.png');
  expect(photo).toMatchObject({
    statusCode: 200,
    headers: {
      'content-type': 'image/png',
      'content-length': '4',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'same-origin',
    },
  });
  expect(Buffer.from(await photo.body.arrayBuffer())).toEqual(Buffer.from([137, 80, 78, 71]));

  const html = await get('../a/b.html');
  expect(html.headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': expect.stringMatching(/^attachment; filename="__a_b.html"; /),
    'x-content-type-options': 'nosniff',
  });
  expect(await html.body.text()).toBe(page);
});

test.each([
  ['another name', `/query/runs/${ROOT}/attachments/other`, 404],
  ['an unknown run', `/query/runs/${CHILD}/attachments/photo`, 404],
  ['an invalid id', '/query/runs/x/attachments/photo', 422],
  ['a longer path', `/query/runs/${ROOT}/attachments/photo/x`, 404],
  ['the name __proto__', `/query/runs/${ROOT}/attachments/__proto__`, 404],
  ['the parent folder', `/query/runs/${ROOT}/attachments/..`, 404],
  ['an escaped parent folder', `/query/runs/${ROOT}/attachments/%2e%2e%2fphoto`, 404],
  ['an invalid escape', `/query/runs/${ROOT}/attachments/%ff`, 400],
  ['a NUL', `/query/runs/${ROOT}/attachments/photo%00`, 404],
])('an error for %s', async (_, path, status) => {
  const receiver = await start();
  await sendParts(receiver, part(`post.${ROOT}`, makeRun()), attachment('photo', Buffer.from('x'), 'image/png'));
  expect(await call(receiver.url + path, 'GET')).toMatchObject({ status, body: { detail: expect.anything() } });
});

/** Returns the headers of the response for an attachment that the store returns. */
async function headersOf(mimeType: string, name = 'photo') {
  const found = { name, mimeType, bytes: Uint8Array.of(0, 255) };
  const receiver = await start({ store: Object.assign(new MemoryStore(), { attachment: async () => found }) });
  const { headers, body } = await request(`${receiver.url}/query/runs/${ROOT}/attachments/photo`);
  expect(headers).toMatchObject({ 'content-security-policy': "sandbox; default-src 'none'" });
  expect(new Uint8Array(await body.arrayBuffer())).toEqual(found.bytes);
  return headers;
}

describe('a type', () => {
  const shown = 'image/png image/jpeg image/gif image/webp image/avif audio/mpeg audio/x-wav video/mp4'.split(' ');

  test.each([...shown, 'Image/PNG; charset=utf-8'])('%s is shown', async (type) => {
    expect(await headersOf(type)).toMatchObject({
      'content-type': type.toLowerCase().split(';')[0],
      'content-disposition': expect.stringMatching(/^inline; /),
    });
  });

  test.each([
    ...['text/html', 'image/svg+xml', 'image/svg', 'application/pdf', 'image/png, text/html', 'image/png\r\nx: y'],
    ...['text/html; image/png', 'video/', 'audio/mp3/x', ''],
  ])('%j is downloaded as bytes', async (type) => {
    expect(await headersOf(type)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': expect.stringMatching(/^attachment; /),
    });
  });
});

test.each([
  ['report.pdf', 'filename="report.pdf"; filename*=UTF-8\'\'report.pdf'],
  ['größe 1.png', 'filename="gr__e_1.png"; filename*=UTF-8\'\'gr%C3%B6%C3%9Fe%201.png'],
  ['a"; filename="b.exe', 'filename="a___filename__b.exe"; filename*=UTF-8\'\'a%22%3B%20filename%3D%22b.exe'],
  ['../../etc/passwd', 'filename="__.._etc_passwd"; filename*=UTF-8\'\'.._.._etc_passwd'],
  ['..\\a', 'filename="__a"; filename*=UTF-8\'\'.._a'],
  ['..', 'filename="_"; filename*=UTF-8\'\'_'],
  ['a\r\nset-cookie: x', 'filename="a__set-cookie__x"; filename*=UTF-8\'\'a%0D%0Aset-cookie%3A%20x'],
  ["it's (1)*", 'filename="it_s__1__"; filename*=UTF-8\'\'it%27s%20%281%29%2A'],
  ['.bashrc', 'filename="_bashrc"; filename*=UTF-8\'\'.bashrc'],
  ['\0\ud800', 'filename="__"; filename*=UTF-8\'\'%00%EF%BF%BD'],
])('the name %j', async (name, expected) => {
  expect((await headersOf('image/png', name))['content-disposition']).toBe(`inline; ${expected}`);
});
