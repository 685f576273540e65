import { join } from 'node:path';
import { inspect } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { ControlPlane, ControlPlaneOptions } from '#src/clients/control-plane/control-plane.ts';
import type { Platform, PlatformRequest } from '#src/testing.ts';
import { testFolder } from '../support/test-folder.ts';
import { broken, count, json, never, SOURCE, setUp, TENANT, text } from './control-plane-set-up.ts';
import { thrownBy } from './make-api.ts';

const PUT = /^PUT/;

interface Upload {
  readonly platform: Platform;
  readonly client: ControlPlane;
  readonly id: string;
  readonly root: string;
  /** Uploads and returns what it throws. */
  readonly failure: (from?: string, options?: object) => Promise<Error>;
}

async function upload(options: Partial<ControlPlaneOptions> = {}): Promise<Upload> {
  const root = testFolder({ 'graph.json': '{"graphs":{}}' });
  const made = await setUp(options, { hosting: 'cloud' });
  const { id } = await made.client.deployments.create(SOURCE);
  const failure = (from = root, asked?: object) => thrownBy(made.client.deployments.uploadSource(id, from, asked));
  return { ...made, id, root, failure };
}

function paths({ requests }: Platform): string[] {
  return requests.slice(1).map(({ path }) => path);
}

describe('an upload of a source', () => {
  it('sends the archive to the URL and returns its path for the deployment', async () => {
    const { platform, client, id, root } = await upload({ tenantId: TENANT, headers: { 'x-team': 'search' } });
    const progress: number[] = [];
    const uploaded = await client.deployments.uploadSource(id, root, {
      onProgress: ({ bytes, sentBytes }) => progress.push(sentBytes / bytes),
    });
    const stored = platform.uploads.get(uploaded.source_tarball_path);
    expect(gunzipSync(stored ?? Buffer.of()).toString()).toContain('{"graphs":{}}');
    expect([progress.at(0), progress.at(-1)]).toEqual([0, 1]);
    const updated = await client.deployments.updateAndWait(id, { source_revision_config: uploaded }, { intervalMs: 1 });
    expect(updated.revision?.source_revision_config).toMatchObject(uploaded);
    expect(paths(platform)[0]).toBe(`/v2/deployments/${id}/upload-url`);
  });

  it('ends when the client is closed', async () => {
    const { platform, client, failure } = await upload();
    platform.next(PUT, async (request) => {
      void client.close();
      return never(request);
    });
    expect(await failure()).toMatchObject({ name: 'ConnectionError', code: 'RUNSPAN_NO_RESPONSE' });
  });

  it('sends no key and no header of the client', async () => {
    const { platform, client, id, root } = await upload({ bearerToken: 'token-1', headers: { 'x-team': 'search' } });
    await client.deployments.uploadSource(id, root, { headers: { 'x-more': '1' } });
    const [stored] = platform.uploads.values();
    const { headers } = platform.requests.at(-1) as PlatformRequest;
    expect(headers).toMatchObject({
      'content-type': 'application/gzip',
      'content-length': String(stored?.length),
      'x-goog-content-length-range': '0,209715200',
    });
    for (const name of ['x-api-key', 'authorization', 'x-tenant-id', 'x-team', 'x-more', 'cookie']) {
      expect(headers).not.toHaveProperty(name);
    }
  });

  it('requests the URL without a version if the service has no versioned path, and remembers that', async () => {
    const { platform, client, id, root } = await upload();
    platform.next(/v2.*upload-url/, json({ detail: 'Not Found' }, 404));
    await client.deployments.uploadSource(id, root);
    await client.deployments.uploadSource(id, root);
    expect(paths(platform).filter((path) => path.endsWith('upload-url'))).toEqual([
      `/v2/deployments/${id}/upload-url`,
      `/deployments/${id}/upload-url`,
      `/deployments/${id}/upload-url`,
    ]);
    expect(platform.uploads.size).toBe(2);
    const other = id.replace(/^........-/, '00000000-');
    expect(await thrownBy(client.deployments.uploadSource(other, root))).toMatchObject({
      detail: `Deployment ID ${other} not found.`,
    });
  });

  it('requests the URL once if the deployment is unknown', async () => {
    const { platform, client, id, root } = await upload();
    const other = id.replace(/^........-/, '00000000-');
    expect(await thrownBy(client.deployments.uploadSource(other, root))).toMatchObject({ status: 404 });
    expect(paths(platform).length).toBe(1);
  });

  it('retries from the beginning after a temporary failure', async () => {
    const { platform, client, id, root } = await upload();
    platform.next(PUT, text('', 503));
    platform.next(PUT, broken);
    const { source_tarball_path } = await client.deployments.uploadSource(id, root);
    expect(count(platform, PUT)).toBe(3);
    expect(platform.uploads.has(source_tarball_path)).toBe(true);
  });

  it.each([403, 307])('rejects with %d without the signature of the URL in the error', async (status) => {
    const { platform, failure } = await upload();
    let signature = '';
    platform.next(PUT, ({ url = '' }) => {
      signature = new URL(url, platform.url).searchParams.get('X-Signature') ?? '';
      const content = `${url} ${decodeURIComponent(url)} ${signature}`;
      return { status, headers: { location: `${platform.url}${url}`, 'x-echo': url }, content };
    });
    const error = await failure();
    expect(error).toMatchObject({ status, name: 'ApiError' });
    const seen = inspect(error, { depth: 9, showHidden: true }) + error.message;
    for (const text of [signature, encodeURIComponent(signature)]) expect(seen).not.toContain(text);
    expect(signature).toMatch(/=$/);
    expect(paths(platform).length).toBe(2);
  });

  it('calls hooks without the signature of the URL', async () => {
    const urls: string[] = [];
    const { client, id, root } = await upload({ hooks: { onRequest: ({ url }) => urls.push(url) } });
    await client.deployments.uploadSource(id, root);
    expect(urls.at(-1)).toMatch(/\/objects\/uploads\/.*\.tar\.gz$/);
    expect(urls.join()).not.toContain('X-Signature');
  });

  it('sends nothing if there is no source', async () => {
    const { platform, client, root, failure } = await upload();
    const invalid = { code: 'RUNSPAN_INVALID_REQUEST' };
    expect(await failure(join(root, 'gone'))).toMatchObject(invalid);
    expect(await thrownBy(client.deployments.uploadSource('x', root))).toMatchObject(invalid);
    expect(await failure(root, { onProgress: 7 })).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
    expect(paths(platform)).toEqual([]);
  });

  it.each(['{}', '{"upload_url":7,"object_path":"p"}', '{"upload_url":"https://a.example"}'])(
    'rejects the response %s without a URL',
    async (body) => {
      const { platform, failure } = await upload();
      platform.next(/upload-url/, text(body));
      expect(await failure()).toMatchObject({ code: 'RUNSPAN_INVALID_RESPONSE' });
    },
  );

  it.each([{ object_path: 'uploads/1' }, { object_path: 'uploads/1', upload_url: null, later_field: 1 }])(
    'has no URL if the service returns only a path: %j',
    async (answer) => {
      const { platform, client, id, failure } = await upload();
      platform.next(/upload-url/, json(answer));
      expect(await client.deployments.uploadUrl(id)).toEqual(answer);
      platform.next(/upload-url/, json(answer));
      expect(await failure()).toMatchObject({
        code: 'RUNSPAN_INVALID_RESPONSE',
        message: expect.stringMatching(
          /upload-url": 200, but the response has no upload_url; .* as source_tarball_path$/,
        ),
      });
      expect(count(platform, PUT)).toBe(0);
    },
  );

  it.each(['ftp://a.example/x', 'http://a.example/x?signature=c2lnbmF0dXJl', 'nowhere', 'https://u:p@a.example/'])(
    'refuses the URL %s',
    async (upload_url) => {
      const { platform, failure } = await upload();
      platform.next(/upload-url/, json({ upload_url, object_path: 'p' }));
      const error = await failure();
      expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
      expect(error.message).toContain('`upload_url`');
      if (upload_url.startsWith('http:')) expect(error.message).toContain('the URL is a credential and is not sent');
      expect(error.message).not.toContain('c2lnbmF0');
    },
  );

  it('ends with the reason of the signal at each step', async () => {
    const { platform, root, failure } = await upload();
    const reason = new Error('enough');
    const asked = new AbortController();
    const abort = (controller: AbortController) => () => {
      controller.abort(reason);
      return { status: 503 };
    };
    platform.next(/upload-url/, abort(asked));
    expect(await failure(root, { signal: asked.signal })).toBe(reason);
    const sent = new AbortController();
    platform.next(PUT, abort(sent));
    expect(await failure(root, { signal: sent.signal })).toBe(reason);
    expect(await failure(root, { signal: AbortSignal.abort(reason) })).toBe(reason);
    expect(count(platform, PUT)).toBe(1);
  });

  it('ends after its timeout, or with an error of `onProgress`', async () => {
    const { platform, root, failure } = await upload();
    platform.next(PUT, never);
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
      await expect.poll(() => platform.uploads.size).toBe(1);
      throw thrown;
    };
    expect(await failure(root, { onProgress: last })).toBe(thrown);
  });
});
