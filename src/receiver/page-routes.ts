import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { Refusal } from './refusal.ts';
import type { Answer, Route } from './route.ts';

/** Where the build puts the page. A test that runs the sources takes what was built last. */
const FOLDER: URL = import.meta.url.endsWith('.ts')
  ? new URL('../../dist/viewer/', import.meta.url)
  : new URL('../viewer/', import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * The page runs its own scripts and nothing else, shows pictures of payloads, and speaks with its own origin: what a
 * payload brings along stays text, and tells nobody that it has been looked at.
 */
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

/** The page in which runs are read. It holds nothing of them, and is where a key is asked for: whoever comes has it. */
export const pageRoutes: readonly Route[] = [
  { method: 'GET', path: /^\/$/, admission: 'open', handle: () => answered('index.html', 'no-cache') },
  {
    method: 'GET',
    path: /^\/assets\/(?<name>[^/]+)$/,
    admission: 'open',
    // The names of assets change with what is in them.
    handle: ({ parameters }) => answered(`assets/${parameters.name}`, 'public, max-age=31536000, immutable'),
  },
];

/** By the path within the folder, read at the first request. No other name is looked for on disk. */
let files: ReadonlyMap<string, Uint8Array> = new Map();

function answered(path: string, caching: string): Answer {
  // A checkout may be built after its receiver has started.
  if (files.size === 0) files = readFiles();
  const content = files.get(path);
  if (content === undefined) {
    throw new Refusal(
      404,
      files.size === 0 ? 'This copy of the package was built without its page' : `There is nothing at /${path}`,
    );
  }
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  return {
    status: 200,
    headers: { 'content-type': type, 'content-security-policy': POLICY, 'cache-control': caching },
    content,
  };
}

function readFiles(): ReadonlyMap<string, Uint8Array> {
  const names = ['index.html', ...namesIn('assets/').map((name) => `assets/${name}`)];
  return new Map(names.flatMap((name) => entryOf(name)));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(new URL(folder, FOLDER));
  } catch {
    return [];
  }
}

function entryOf(name: string): [string, Uint8Array][] {
  try {
    return [[name, readFileSync(new URL(name, FOLDER))]];
  } catch {
    return [];
  }
}
