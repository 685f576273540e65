import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { isObject } from '../../config/checker.ts';
import { HttpError } from './http-error.ts';
import { type Call, get, type Route, type RouteResponse, readJson } from './route.ts';

/** Folder with the built page. Tests that run from source use the latest build. */
const FOLDER: URL = import.meta.url.endsWith('.ts')
  ? new URL('../../../dist/viewer/', import.meta.url)
  : new URL('../../viewer/', import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** With this policy, content in a payload can neither run code nor send data elsewhere. */
const POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** `Cache-Control` header for assets. An asset never changes, because its name contains a hash of its content. */
const IMMUTABLE = 'public, max-age=31536000, immutable';

/** HTTP routes of the page. The page itself contains no data. It exchanges the user's key for a cookie. */
export const pageRoutes: readonly Route[] = [
  get('/', () => fileAnswer('index.html', 'no-cache'), 'open'),
  get('/assets/:name', ({ parameters }) => fileAnswer(`assets/${parameters.name}`, IMMUTABLE), 'open'),
  { method: 'POST', path: '/login', admission: 'open', handle: login },
  { method: 'POST', path: '/logout', admission: 'open', handle: logout },
  // The page hides controls that the key does not allow.
  get('/query/session', ({ permission, scope: { tenant, project }, lag }) => {
    return { status: 200, body: { permission, tenant, project, lag: lag() } };
  }),
];

const LOGIN_BYTES_MAX = 4 * 1024;

async function login(call: Call): Promise<RouteResponse> {
  const body = await readJson(call, LOGIN_BYTES_MAX);
  const key = isObject(body) ? body.key : undefined;
  return { status: 200, body: {}, headers: { 'set-cookie': await call.access.login(key, call.request) } };
}

async function logout({ access, request }: Call): Promise<RouteResponse> {
  return { status: 200, body: {}, headers: { 'set-cookie': await access.logout(request) } };
}

/** Files of the page, by path in the folder. The receiver serves no other files. */
let files: ReadonlyMap<string, Buffer> = new Map();

/** Returns the page of a saved trace: the part before the trace, and the part after it. */
export function savedPage(): readonly [before: string, after: string] {
  // No route serves this file without a trace.
  const [before = '', after = ''] = fileAt('saved.html').toString().split('"the trace"');
  return [before, after];
}

function fileAnswer(path: string, caching: string): RouteResponse {
  const content = fileAt(path);
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  const headers = { 'content-type': type, 'content-security-policy': POLICY, 'cache-control': caching };
  return { status: 200, headers, content };
}

function fileAt(path: string): Buffer {
  // In a Git checkout, the page may be built after the receiver has started.
  if (files.size === 0) files = readFiles();
  const content = files.get(path);
  if (content !== undefined) return content;
  const detail = files.size === 0 ? 'This copy of the package was built without its page' : `Unknown path: /${path}`;
  throw new HttpError(404, detail);
}

function readFiles(): ReadonlyMap<string, Buffer> {
  try {
    const assets = readdirSync(new URL('assets/', FOLDER)).map((name) => `assets/${basename(name, '.br')}`);
    const read = (path: string): Buffer => brotliDecompressSync(readFileSync(new URL(`${path}.br`, FOLDER)));
    return new Map(['index.html', 'saved.html', ...assets].map((path) => [path, read(path)]));
  } catch {
    return new Map();
  }
}
