import { Agent, interceptors } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type ConfigureOptions,
  createExporter,
  fromHeaders,
  startRun,
  toHeaders,
  traceable,
  withRun,
} from '#src/index.ts';
import { serve } from '../http/server.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';
import { service } from './service.ts';

/** Sends a run and waits until it is delivered or an attempt has failed, and until `check` passes. */
async function send(options: ConfigureOptions, check = (): void => {}): Promise<void> {
  const exporter = createExporter({ apiKey: 'sk-the-key', ...options });
  startRun({ name: 'a', exporter }).end();
  void exporter.flush();
  const isSettled = (): boolean => {
    const { sent, lastError } = exporter.stats();
    check();
    return sent > 0 || lastError !== undefined;
  };
  await expect.poll(isSettled).toBe(true);
  await exporter.close({ timeoutMs: 1 });
}

describe('a redirect', () => {
  test('is not followed for any status, including /info [security 4]', async () => {
    environmentOf();
    const lines = logLines();
    const other = await serve();
    await Promise.all(
      [300, 301, 302, 303, 305, 307, 308].map(async (status) => {
        const { url, seen } = await serve((_, response) =>
          response.writeHead(status, { location: `${other.url}/` }).end(),
        );
        const urls = new Set(['/info', '/runs/multipart']);
        await send({ endpoint: url }, () => expect(new Set(seen.map((request) => request.url))).toEqual(urls));
        expect(lines.join('\n')).toContain(`status ${status}: redirects are not followed, check the endpoint`);
      }),
    );
    expect(other.connections()).toBe(0);
    expect(lines.join('\n')).not.toContain(other.url);
  });

  test('is not followed by the fallback for single runs [security 4]', async () => {
    environmentOf();
    logLines();
    const other = await serve();
    const { url, seen } = await serve((request, response) => {
      if (request.url === '/runs') response.writeHead(307, { location: `${other.url}/runs` }).end();
      else response.writeHead(404).end();
    });
    await send({ endpoint: url }, () => expect(seen.map((request) => request.url)).toContain('/runs'));
    expect(other.connections()).toBe(0);
  });

  test('is not followed by a dispatcher that follows redirects of its own requests [security 4]', async () => {
    environmentOf();
    logLines();
    const other = await serve();
    const { url } = await serve((_, response) => response.writeHead(302, { location: other.url }).end());
    const agent = new Agent();
    onTestFinished(() => agent.destroy());
    const following = agent.compose(interceptors.redirect({ maxRedirections: 3 }));
    await send({ endpoint: url, dispatcher: following });
    expect(other.connections()).toBe(0);
  });

  test('in the headers or the HTML of a response is not followed [security 4]', async () => {
    environmentOf();
    logLines();
    const other = await serve();
    const { url } = await serve((_, response) =>
      response
        .writeHead(200, {
          'content-type': 'text/html',
          refresh: `0; url=${other.url}`,
          'alt-svc': `h2="${other.url.slice(7)}"`,
          link: `<${other.url}>; rel=canonical`,
        })
        .end(`<meta http-equiv="refresh" content="0; url=${other.url}">`),
    );
    await send({ endpoint: url });
    expect(other.connections()).toBe(0);
  });
});

describe('the endpoint and the key', () => {
  test('are not read from responses of the service [security 4]', async () => {
    const other = await serve();
    const said = {
      endpoint: other.url,
      url: other.url,
      api_url: other.url,
      apiKey: 'other',
      headers: { 'x-api-key': 'other' },
    };
    const info = { ...said, batch_ingest_config: { ...said, size_limit: 10 }, instance_flags: said };
    const reply = () => ({ status: 202, body: JSON.stringify(said) });
    const { server } = await service(reply, { status: 200, body: JSON.stringify(info) });
    await send({ endpoint: server.url });
    await send({ endpoint: server.url });
    expect(other.connections()).toBe(0);
    expect(server.received.map(({ headers }) => headers['x-api-key'])).toEqual(['sk-the-key', 'sk-the-key']);
  });

  test('are not read from the headers of incoming requests [security 4]', async () => {
    const other = await serve();
    const { server } = await service();
    const order = '20261120T072240123456Z0193b3a0-1111-7000-8000-000000000001';
    const replicas = encodeURIComponent(
      JSON.stringify([{ apiUrl: other.url, apiKey: 'other', project: 'p' }, [other.url, 'other']]),
    );
    for (const dialect of ['runspan', 'langsmith']) {
      const members = ['replicas', 'endpoint', 'api-key', 'apiKey', 'api_url', 'workspace', 'headers'];
      const baggage = members.map((name) => `${dialect}-${name}=${replicas}`).join(',');
      const headers = {
        [`${dialect}-trace`]: order,
        baggage,
        'x-api-key': 'other',
        'x-tenant-id': 'other',
        host: other.url,
      };
      const remote = fromHeaders(headers);
      expect(remote?.id).toBe('0193b3a0-1111-7000-8000-000000000001');
      const exporter = createExporter({ endpoint: server.url, apiKey: 'sk-the-key' });
      const onward = withRun(remote, () => traceable(() => toHeaders(), { exporter })());
      await exporter.close();
      expect(JSON.stringify(onward)).not.toMatch(/other|sk-the-key/);
    }
    expect(other.connections()).toBe(0);
    expect(server.received).toHaveLength(2);
    for (const { headers, body } of server.received) {
      expect(headers).toMatchObject({ 'x-api-key': 'sk-the-key' });
      expect(headers).not.toHaveProperty('x-tenant-id');
      expect(body.toString()).not.toContain(other.url);
    }
  });
});
