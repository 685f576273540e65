import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { ignoreErrors } from '../../base/guard.ts';
import { isLoopback } from '../../config/checker.ts';
import { readWhole, systemFs, writeNewFile } from '../../delivery/spool/fs.ts';
import type { Route } from '../../receiver/http/route.ts';
import { serviceInfo } from '../../receiver/ingest/ingest-routes.ts';

const NONCE_HEADER = 'x-runspan-nonce';
const PROOF_HEADER = 'x-runspan-proof';
/** Time limit of the proof in milliseconds. A receiver under load responds late, and another program perhaps never. */
const PROOF_MAX_MS = 5_000;
const FILE_BYTES_MAX = 4_096;

/**
 * Tells other processes of this user which receiver serves a store. The address and a secret token are in a file beside
 * the store that only the user can read. `GET /info` proves that the receiver knows the token, because any user of the
 * machine can listen on the port of a receiver that has ended.
 */
export class Registration {
  readonly #path: string;
  readonly #token: string = randomBytes(32).toString('hex');

  constructor(storePath: string) {
    this.#path = fileFor(storePath);
  }

  /** `GET /info` that answers a nonce with a proof. */
  get route(): Route {
    return {
      method: 'GET',
      path: '/info',
      admission: 'open',
      handle: ({ request: { headers, socket } }) => {
        const nonce = headers[NONCE_HEADER];
        if (typeof nonce !== 'string') return serviceInfo();
        const proof = proofOf(this.#token, nonce, `${socket.localPort}`);
        return { ...serviceInfo(), headers: { [PROOF_HEADER]: proof.toString('hex') } };
      },
    };
  }

  /** Replaces the file of an earlier receiver. Throws if the file cannot be written. */
  write(url: string): void {
    const aside = `${this.#path}-${process.pid}`;
    mkdirSync(dirname(aside), { recursive: true, mode: 0o700 });
    rmSync(aside, { force: true });
    writeNewFile(systemFs, aside, Buffer.from(JSON.stringify({ url, token: this.#token })));
    // Unlike a write, a rename does not follow a symbolic link.
    renameSync(aside, this.#path);
  }

  /** Removes the file, unless a later receiver has replaced it. */
  remove(): void {
    if (readRegistered(this.#path)?.token === this.#token) rmSync(this.#path, { force: true });
  }
}

/** Returns the address of the receiver that serves a store, or undefined if no receiver proves that it does. */
export async function registeredReceiver(storePath: string | undefined): Promise<string | undefined> {
  const found = storePath === undefined ? undefined : readRegistered(fileFor(storePath));
  if (found === undefined) return undefined;
  const nonce = randomBytes(32).toString('hex');
  try {
    const response = await fetch(new URL('/info', found.url), {
      headers: { [NONCE_HEADER]: nonce },
      redirect: 'manual',
      signal: AbortSignal.timeout(PROOF_MAX_MS),
    });
    void response.body?.cancel().catch(() => {});
    const proof = Buffer.from(response.headers.get(PROOF_HEADER) ?? '', 'hex');
    const expected = proofOf(found.token, nonce, new URL(found.url).port);
    return proof.length === expected.length && timingSafeEqual(proof, expected) ? found.url : undefined;
  } catch {
    return undefined;
  }
}

/** The port is part of the proof, so that a program on another port cannot relay the nonce to the receiver. */
function proofOf(token: string, nonce: string, port: string): Buffer {
  return createHmac('sha256', token).update(`${nonce} ${port}`).digest();
}

function fileFor(storePath: string): string {
  return `${storePath}-receiver`;
}

/** Reads a file that only this user can have written. Returns undefined if there is none. */
function readRegistered(path: string): { readonly url: string; readonly token: string } | undefined {
  return ignoreErrors(() => {
    const { bytes, facts } = readWhole(systemFs, path, FILE_BYTES_MAX) ?? {};
    const uid = process.getuid?.();
    if (facts === undefined || (uid !== undefined && (facts.uid !== uid || (facts.mode & 0o077) !== 0)))
      return undefined;
    const { url, token } = JSON.parse(`${bytes}`);
    const isUsable = typeof token === 'string' && token.length === 64 && isLoopback(new URL(url).hostname);
    return isUsable ? { url, token } : undefined;
  });
}
