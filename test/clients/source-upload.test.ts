import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import type { ControlPlane, ControlPlaneOptions } from '#src/clients/control-plane/control-plane.ts';
import { testFolder } from '../support/test-folder.ts';
import type { ControlPlaneServer, ControlPlaneServerOptions } from './control-plane-server.ts';
import { makeDeployment, setUp } from './control-plane-set-up.ts';
import { thrownBy } from './make-api.ts';

const SOURCE = makeDeployment({
  source: 'internal_source',
  source_revision_config: { graph_config_path: 'graph.json' },
});

interface Upload {
  readonly server: ControlPlaneServer;
  readonly client: ControlPlane;
  readonly id: string;
  readonly root: string;
  /** Uploads and returns what it throws. */
  readonly failure: (from?: string, options?: object) => Promise<Error>;
}

async function upload(
  options: Partial<ControlPlaneOptions> = {},
  serverOptions: ControlPlaneServerOptions = {},
): Promise<Upload> {
  const root = testFolder({ 'graph.json': '{"graphs":{}}' });
  const made = await setUp(options, serverOptions);
  const { id } = await made.client.deployments.create(SOURCE);
  made.server.calls.length = 0;
  const failure = (from = root, asked?: object) => thrownBy(made.client.deployments.uploadSource(id, from, asked));
  return { ...made, id, root, failure };
}

describe('an upload of a source', () => {
  it('sends the archive to the URL and returns its path for the deployment', async () => {
    const { server, client, id, root } = await upload({ tenantId: 'workspace-1', headers: { 'x-team': 'search' } });
    const progress: number[] = [];
    const uploaded = await client.deployments.uploadSource(id, root, {
      onProgress: ({ bytes, sentBytes }) => progress.push(sentBytes / bytes),
    });
    const stored = server.store.objects.get(uploaded.source_tarball_path);
    expect(gunzipSync(stored?.bytes ?? Buffer.of()).toString()).toContain('{"graphs":{}}');
    expect([progress.at(0), progress.at(-1)]).toEqual([0, 1]);
    const updated = await client.deployments.updateAndWait(id, { source_revision_config: uploaded }, { intervalMs: 1 });
    expect(updated.revision?.source_revision_config).toMatchObject(uploaded);
    expect(server.calls[0]).toMatchObject({ method: 'POST', path: `/v2/deployments/${id}/upload-url` });
  });

  it('ends when the client is closed', async () => {
    const { server, client, failure } = await upload();
    server.store.answers.push(() => void client.close());
    expect(await failure()).toMatchObject({ name: 'ConnectionError', code: 'RUNSPAN_NO_RESPONSE' });
  });

  it('sends no key and no header of the client', async () => {
    const { server, client, id, root } = await upload({ bearerToken: 'token-1', headers: { 'x-team': 'search' } });
    await client.deployments.uploadSource(id, root, { headers: { 'x-more': '1' } });
    const [stored] = server.store.objects.values();
    expect(stored?.headers).toMatchObject({
      'content-type': 'application/gzip',
      'content-length': String(stored?.bytes.length),
      'x-goog-content-length-range': '0,209715200',
    });
    for (const name of ['x-api-key', 'authorization', 'x-tenant-id', 'x-team', 'x-more', 'cookie']) {
      expect(stored?.headers).not.toHaveProperty(name);
    }
  });

  it('requests the URL without a version if the service has no versioned path, and remembers that', async () => {
    const { server, client, id, root } = await upload({}, { isUploadVersioned: false });
    await client.deployments.uploadSource(id, root);
    expect(server.calls.map(({ path }) => path)).toEqual([
      `/v2/deployments/${id}/upload-url`,
      `/deployments/${id}/upload-url`,
    ]);
    expect(server.store.objects.size).toBe(1);
    server.calls.length = 0;
    await client.deployments.uploadSource(id, root);
    expect(server.calls.map(({ path }) => path)).toEqual([`/deployments/${id}/upload-url`]);
    const other = id.replace(/^........-/, '00000000-');
    expect(await thrownBy(client.deployments.uploadSource(other, root))).toMatchObject({
      detail: `Deployment ID ${other} not found.`,
    });
  });

  it('requests the URL once if the deployment is unknown', async () => {
    const { server, client, id, root } = await upload();
    const other = id.replace(/^........-/, '00000000-');
    expect(await thrownBy(client.deployments.uploadSource(other, root))).toMatchObject({ status: 404 });
    expect(server.calls.length).toBe(1);
  });

  it('retries from the beginning after a temporary failure', async () => {
    const { server, client, id, root } = await upload();
    server.store.answers.push((request, response) => {
      request.resume();
      response.writeHead(503).end();
    });
    server.store.answers.push((request) => request.socket.destroy());
    const { source_tarball_path } = await client.deployments.uploadSource(id, root);
    expect(server.store.requests.length).toBe(3);
    expect(server.store.objects.has(source_tarball_path)).toBe(true);
  });

  it.each([403, 307])('rejects with %d without the signature of the URL in the error', async (status) => {
    const { server, failure } = await upload();
    server.store.answers.push((request, response) => {
      request.resume();
      const said = `${request.url} ${decodeURIComponent(request.url ?? '')}`;
      response.writeHead(status, { location: `${server.url}${request.url}`, 'x-echo': request.url }).end(said);
    });
    const error = await failure();
    expect(error).toMatchObject({ status, name: 'ApiError' });
    expect(inspect(error, { depth: 9, showHidden: true }) + error.message).not.toMatch(/c2lnbmF0dXJl|X-Signature=c/);
    expect(server.store.requests.length).toBe(1);
    expect(server.calls.length).toBe(1);
  });

  it('calls hooks without the signature of the URL', async () => {
    const urls: string[] = [];
    const { client, id, root } = await upload({ hooks: { onRequest: ({ url }) => urls.push(url) } });
    await client.deployments.uploadSource(id, root);
    expect(urls.at(-1)).toMatch(/\/store\/uploads\/.*\.tar\.gz$/);
    expect(urls.join()).not.toContain('c2lnbmF0');
  });

  it('sends nothing if there is no source', async () => {
    const { server, client, root, failure } = await upload();
    const invalid = { code: 'RUNSPAN_INVALID_REQUEST' };
    expect(await failure(join(root, 'gone'))).toMatchObject(invalid);
    expect(await thrownBy(client.deployments.uploadSource('x', root))).toMatchObject(invalid);
    expect(await failure(root, { onProgress: 7 })).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
    expect(server.calls).toEqual([]);
  });

  it.each(['{}', '{"upload_url":7,"object_path":"p"}', '{"upload_url":"https://a.example"}'])(
    'rejects the response %s without a URL',
    async (body) => {
      const { server, failure } = await upload();
      server.next(/upload-url/, (_, response) => response.end(body));
      expect(await failure()).toMatchObject({ code: 'RUNSPAN_INVALID_RESPONSE' });
    },
  );

  it.each([{ object_path: 'uploads/1' }, { object_path: 'uploads/1', upload_url: null, later_field: 1 }])(
    'has no URL if the service returns only a path: %j',
    async (answer) => {
      const { server, client, id, failure } = await upload();
      server.next(/upload-url/, (_, response) => response.end(JSON.stringify(answer)));
      expect(await client.deployments.uploadUrl(id)).toEqual(answer);
      server.next(/upload-url/, (_, response) => response.end(JSON.stringify(answer)));
      expect(await failure()).toMatchObject({
        code: 'RUNSPAN_INVALID_RESPONSE',
        message: expect.stringMatching(
          /upload-url": 200, but the response has no upload_url; .* as source_tarball_path$/,
        ),
      });
      expect(server.store.requests).toEqual([]);
    },
  );

  it.each(['ftp://a.example/x', 'http://a.example/x?signature=c2lnbmF0dXJl', 'nowhere', 'https://u:p@a.example/'])(
    'refuses the URL %s',
    async (upload_url) => {
      const { server, failure } = await upload();
      const answer = JSON.stringify({ upload_url, object_path: 'p' });
      server.next(/upload-url/, (_, response) => response.end(answer));
      const error = await failure();
      expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
      expect(error.message).toContain('`upload_url`');
      if (upload_url.startsWith('http:')) expect(error.message).toContain('the URL is a credential and is not sent');
      expect(error.message).not.toContain('c2lnbmF0');
    },
  );

  it('ends with the reason of the signal at each step', async () => {
    const { server, root, failure } = await upload();
    const reason = new Error('enough');
    const asked = new AbortController();
    server.next(/upload-url/, () => asked.abort(reason));
    expect(await failure(root, { signal: asked.signal })).toBe(reason);
    const sent = new AbortController();
    server.store.answers.push(() => sent.abort(reason));
    expect(await failure(root, { signal: sent.signal })).toBe(reason);
    expect(await failure(root, { signal: AbortSignal.abort(reason) })).toBe(reason);
    expect(server.store.requests.length).toBe(1);
  });

  it('ends after its timeout, or with an error of `onProgress`', async () => {
    const { server, root, failure } = await upload();
    server.store.answers.push(() => undefined);
    expect(await failure(root, { timeoutMs: 80 })).toMatchObject({ code: 'RUNSPAN_TIMEOUT' });
    const thrown = new Error('listener');
    const onProgress = (): never => {
      throw thrown;
    };
    expect(await failure(root, { onProgress })).toBe(thrown);
    const later = async (): Promise<never> => onProgress();
    expect(await failure(root, { onProgress: later })).toBe(thrown);
    const last = async ({ bytes, sentBytes }: { bytes: number; sentBytes: number }): Promise<void> => {
      if (sentBytes < bytes) return;
      await vi.waitFor(() => expect(server.store.objects.size).toBe(1));
      throw thrown;
    };
    expect(await failure(root, { onProgress: last })).toBe(thrown);
  });

  it('sends a tarball unchanged', async () => {
    const { server, client, id, root } = await upload();
    const bytes = gzipSync('a tarball');
    await writeFile(join(root, 'source.tar.gz'), bytes);
    const { source_tarball_path } = await client.deployments.uploadSource(
      id,
      pathToFileURL(join(root, 'source.tar.gz')),
    );
    expect(server.store.objects.get(source_tarball_path)?.bytes).toEqual(bytes);
    expect(await readFile(join(root, 'source.tar.gz'))).toEqual(bytes);
  });
});
