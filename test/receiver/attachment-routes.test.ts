import { request } from 'undici';
import { describe, expect, test } from 'vitest';
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

describe('an error for', () => {
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
  ])('%s', async (_, path, status) => {
    const receiver = await start();
    await sendParts(receiver, part(`post.${ROOT}`, makeRun()), attachment('photo', Buffer.from('x'), 'image/png'));
    expect(await call(receiver.url + path, 'GET')).toMatchObject({ status, body: { detail: expect.anything() } });
  });
});
