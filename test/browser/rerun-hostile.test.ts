import { request } from 'undici';
import { expect, test } from 'vitest';
import { startRecorded } from '../cli/recorded-call.ts';
import { serve } from '../http/server.ts';
import { newPage } from './connected.ts';
import { idOf } from './runs.ts';

test('a page of another origin and a rebound host send no model call [security 12]', async () => {
  const { service, url, receiver } = await startRecorded();
  const before = await receiver.runs();
  const target = `${url}/query/runs/${idOf(1)}/rerun`;
  const attack = `
    <form id=text method=post action="${target}" enctype="text/plain" target=frame><input name='{"samples":1,"x":"' value='"}'></form>
    <form id=plain method=post action="${target}" target=frame><input name=samples value=1></form>
    <iframe name=frame></iframe><img src="${target}">
    <script>
      const body = '{"samples":1}';
      const tries = [];
      for (const credentials of ['include', 'omit'])
        for (const mode of ['cors', 'no-cors'])
          for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded'])
            tries.push(fetch('${target}', { method: 'POST', mode, credentials, headers: { 'content-type': type }, body }).then((r) => r.status, () => 0));
      tries.push(Promise.resolve(navigator.sendBeacon('${target}', new Blob([body], { type: 'text/plain' }))));
      for (const form of document.forms) form.submit();
      Promise.all(tries).then((statuses) => { document.title = 'successes: ' + statuses.filter((one) => one === 200).length; });
    </script>`;
  const hostile = await serve((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(attack));
  const { page } = await newPage({}, /./);
  const answered: number[] = [];
  page.on('response', (response) => response.url() === target && answered.push(response.status()));
  await page.goto(hostile.url);
  await expect.poll(() => page.title()).toBe('successes: 0');
  await page.waitForLoadState('networkidle');
  expect(answered.filter((status) => status < 400)).toEqual([]);
  for (const headers of [{ host: 'evil.example' }, { origin: hostile.url }, { 'sec-fetch-site': 'same-site' }]) {
    const given = { 'content-type': 'application/json', ...headers };
    const { statusCode } = await request(target, { method: 'POST', headers: given, body: '{}' });
    expect(statusCode).toBe(403);
  }
  expect(service.seen).toEqual([]);
  expect(await receiver.runs()).toEqual(before);
});
