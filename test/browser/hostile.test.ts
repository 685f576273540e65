import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serve } from '../http/server.ts';
import { sendJson } from '../receiver/wire.ts';
import { testFolder } from '../support/test-folder.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';
import { openFile } from './saved-page.ts';

const HIT = 'globalThis.hits=(globalThis.hits||0)+1';

const hostileTexts = (beaconUrl: string): string[] => [
  `<script>${HIT}</script>`,
  `"><img src=x onerror="${HIT}">`,
  `<svg onload="${HIT}"></svg>`,
  `<iframe srcdoc="<script>parent.${HIT}</script>"></iframe>`,
  `</textarea></title></style><script>${HIT}</script>`,
  `javascript:${HIT}`,
  `[a link](javascript:${HIT}) <javascript:${HIT}> ![x](javascript:${HIT})`,
  `[a link](JaVaScRiPt:${HIT} "t") [b](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [c](vbscript:x)`,
  `![pixel](${beaconUrl}/markdown.png) <img src="${beaconUrl}/html.png"> <link rel=stylesheet href=${beaconUrl}/a.css>`,
  `<a href="x" onclick="${HIT}">x</a><style>@import '${beaconUrl}/b.css'; * { background: url(${beaconUrl}/c.png) }</style>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=${HIT}>`,
  '\u202egpj.exe\u202c \u2066hidden\u2069 \u200bzero \u001b[31mred\u001b[0m \u0000 \ud800 \u{e0041}',
  `{{constructor.constructor('${HIT}')()}} \${${HIT}} <%= ${HIT} %>`,
  `\`\`\`html\n<script>${HIT}</script>\n\`\`\`\n\n| <b onmouseover=${HIT}>x</b> | y |\n|---|---|\n| <img src=x onerror=${HIT}> | z |`,
  `${'>'.repeat(3_000)} deep`,
  `${'['.repeat(2_000)}x${']'.repeat(2_000)}`,
  '__proto__',
];

/** Script that shows each form of the payloads, with all details and JSON expanded. */
const openForms = `(async () => {
  for (const form of ['Conversation', 'Documents', 'Messages', 'Text', 'JSON']) {
    for (const tab of document.querySelectorAll('.panel .switch button')) if (tab.textContent === form) tab.click();
    for (const details of document.querySelectorAll('.panel details')) details.open = true;
    for (const button of document.querySelectorAll('.panel .json-fold[aria-expanded=false]')) button.click();
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  }
})()`;

test('hostile text in any field of a run executes nothing and sends no request, on the page and in a saved file [security 11]', async () => {
  const { seen, url } = await serve();
  const texts = hostileTexts(url);
  const svg = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="${HIT}"><script>${HIT}</script></svg>`);
  const html = Buffer.from(`<script>${HIT}</script>`);
  const operations = texts.flatMap((text, index) => {
    const first = 2 * index + 1;
    const messages = [
      { role: text, name: text, content: text },
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: text } },
          { type: text, [text]: text },
        ],
      },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: `${url}/message.png` } }] },
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/svg+xml;base64,${svg.toString('base64')}` } }],
      },
      { role: 'assistant', tool_calls: [{ id: text, function: { name: text, arguments: text } }] },
      { role: 'tool', tool_call_id: text, name: text, content: text },
    ];
    const fields = {
      name: text.slice(0, 500),
      tags: [text.slice(0, 500)],
      error: `${text}\n${text}`,
      session_name: text.replaceAll('\u0000', '').slice(0, 100),
      extra: { metadata: { [text]: text, ls_model_name: text, nested: { [text]: text } }, runtime: { [text]: text } },
      events: [{ name: text, time: '2026-11-20T07:00:00.000000Z', kwargs: { [text]: text } }],
      outputs: { [text]: text, documents: [{ page_content: text, metadata: { title: text, source: text } }] },
    };
    const attachments = [
      { name: 'picture.svg', mimeType: 'image/svg+xml', bytes: svg },
      { name: 'page.html', mimeType: 'text/html', bytes: html },
      { name: '"><script>', mimeType: text.replace(/[^\x20-\x7e]/g, '').slice(0, 60), bytes: html },
    ];
    return [
      run(first, { ...fields, ms: 5, run_type: text.slice(0, 60), inputs: { [text]: text }, attachments }),
      run(first + 1, { ...fields, parent: first, ms: 5, run_type: 'llm', inputs: { messages, [text]: text } }),
    ];
  });
  const { page, go, receiver } = await openPage(operations);
  for (const [index, text] of texts.entries()) {
    const body = {
      run_id: idOf(2 * index + 1),
      key: text.slice(0, 100),
      value: text,
      comment: text,
      correction: { [text]: text },
    };
    expect((await sendJson(receiver, 'POST', '/query/feedback', body)).status).toBe(200);
  }
  page.on('dialog', (dialog) => void dialog.dismiss());
  const hits = () => page.evaluate('globalThis.hits ?? 0');
  const navigations: string[] = [];
  page.on('framenavigated', (frame) => navigations.push(new URL(frame.url()).origin));

  for (const path of [
    '/',
    '/?view=runs',
    '/?view=statistics',
    '/?view=statistics&by=model',
    `/?q=${encodeURIComponent(texts.slice(0, 13).join(' ').toWellFormed())}`,
  ]) {
    await go(path);
    await page.locator('main > *').first().waitFor();
    expect(await hits()).toBe(0);
  }
  for (const index of texts.keys()) {
    await go(`/?trace=${idOf(2 * index + 1)}`);
    // The forms of the trace's run, then those of its model call.
    for (const [form, heading] of [
      ['Conversation', 'answered'],
      ['Messages', 'Outputs'],
    ] as const) {
      if (form === 'Messages') await page.keyboard.press('j');
      await page.getByRole('heading', { name: heading }).waitFor();
      await page.getByRole('heading', { name: heading }).scrollIntoViewIfNeeded();
      await page.getByRole('button', { name: form }).first().waitFor();
      await page.evaluate(openForms);
      expect(await hits()).toBe(0);
    }
  }
  expect(seen).toEqual([]);
  expect(new Set(navigations)).toEqual(new Set([new URL(receiver.url).origin]));
  const links = await page
    .locator('a[href]')
    .evaluateAll((all) => all.map((one) => (one as unknown as { href: string }).href));
  expect(links.filter((link) => !/^https?:/.test(link))).toEqual([]);

  const folder = testFolder();
  for (const index of texts.keys()) {
    const path = join(folder, `${index}.html`);
    const saved = await fetch(`${receiver.url}/query/traces/${idOf(2 * index + 1)}/export?format=html`);
    writeFileSync(path, await saved.text());
    const file = await openFile(path);
    for (const heading of ['answered', 'Outputs']) {
      await file.page.getByRole('heading', { name: heading }).scrollIntoViewIfNeeded();
      await file.page.locator('.panel .switch').first().waitFor();
      await file.page.evaluate(openForms);
      await file.page.keyboard.press('j');
    }
    expect(await file.page.evaluate('globalThis.hits ?? 0')).toBe(0);
    const protocols = file.requests.map((request) => new URL(request.url()).protocol);
    expect(protocols.filter((protocol) => protocol !== 'data:')).toEqual(['file:']);
    await file.page.close();
  }
  expect(seen).toEqual([]);
}, 180_000);

test('an HTML attachment does not run when it is opened', async () => {
  const html = Buffer.from(`<script>document.title = 'ran'</script>`);
  const { page, receiver } = await openPage([
    run(1, { ms: 5, attachments: [{ name: 'page.html', mimeType: 'text/html', bytes: html }] }),
  ]);
  await page.goto(`${receiver.url}/query/runs/${idOf(1)}/attachments/page.html`).catch(() => undefined);
  expect(await page.title()).not.toBe('ran');
});

test('hidden characters are escaped in lists and payloads', async () => {
  const { page, go } = await openPage([run(1, { ms: 5, name: 'a\u202eb', inputs: { text: 'x\u200by\u001bz' } })]);
  await page.getByText('a\\u202eb').first().waitFor();
  await go(`/?trace=${idOf(1)}`);
  await page.locator('.hidden-character', { hasText: '\\u200b' }).waitFor();
  await page.locator('.hidden-character', { hasText: '\\x1b' }).waitFor();
});

test('a link in Markdown opens only http and https addresses, without a referrer', async () => {
  const text = '[good](https://example.com/a) [bad](javascript:alert(1)) [file](file:///etc/passwd)';
  const { page } = await openPage([run(1, { ms: 5, run_type: 'llm', inputs: { input: text } })], {
    path: `/?trace=${idOf(1)}`,
  });
  const link = page.getByRole('link', { name: 'good' });
  await link.waitFor();
  expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
  expect(await page.getByRole('link', { name: /bad|file/ }).count()).toBe(0);
});
