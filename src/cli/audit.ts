import { open } from 'node:fs/promises';
import { messageOf } from '../base/text.ts';
import { createReceiver } from '../receiver/receiver.ts';
import type { Invocation } from './arguments.ts';
import { AuditStore } from './audit-store.ts';
import { recordJson, recordLines } from './audit-text.ts';
import { type Ending, runChild } from './child.ts';
import { environmentFor } from './dev.ts';
import { samplingOff } from './doctor-settings.ts';
import { quiet } from './quiet.ts';
import { quoted } from './terminal-text.ts';

/** The payloads of a run are nobody else's business. */
const OWNER_ONLY = 0o600;

/**
 * Runs a command with an environment that sends its runs here, and shows each record as it arrives; nothing is forwarded or
 * kept. Rejects when the receiver cannot listen, and when the file cannot be written, at once or when the command has ended.
 */
export async function audit({ command, isJson, output }: Extract<Invocation, { kind: 'audit' }>): Promise<Ending> {
  const target = output === undefined ? process.stderr : await fileStream(output);
  let problem: unknown;
  if (output !== undefined) target.on('error', (error) => (problem ??= error));
  const store = new AuditStore((operation) => {
    const text = isJson ? recordJson(operation) : recordLines(operation, output === undefined).join('\n');
    target.write(`${text}\n`);
  });
  const receiver = await createReceiver({ store });
  // Nothing is left on the disk for a receiver that will be gone.
  const environment = { ...environmentFor(receiver.url), RUNSPAN_DURABILITY: 'memory' };
  const ending = await runChild(command, environment);
  if (ending.kind !== 'not started') await quiet(store);
  await receiver.close();
  if (output !== undefined) await new Promise<void>((resolve) => target.end(resolve));
  if (output !== undefined && problem !== undefined) throw notWritten(output, problem);
  if (ending.kind !== 'not started') process.stderr.write(`runspan audit: ${summaryOf(store)}\n`);
  return ending;
}

/** What has come, in a line; where nothing has, why that may be. */
function summaryOf({ counts: { posts, patches, attachments, bytes } }: AuditStore): string {
  if (posts + patches === 0) {
    const sampling = samplingOff();
    if (sampling !== undefined) return `no records came: ${sampling} is 0, by which no run is recorded`;
    return 'no records came; a program that sets `endpoint` in its code sends there, and one that ends by process.exit() loses its last runs';
  }
  return `posts: ${posts}, patches: ${patches}, attachments: ${attachments}, bytes: ${bytes}; nothing was forwarded`;
}

async function fileStream(path: string): Promise<NodeJS.WritableStream> {
  try {
    const file = await open(path, 'w', OWNER_ONLY);
    // One that was there keeps its mode; a device or a pipe is not ours to change.
    if ((await file.stat()).isFile()) await file.chmod(OWNER_ONLY);
    return file.createWriteStream();
  } catch (error) {
    throw notWritten(path, error);
  }
}

function notWritten(path: string, error: unknown): Error {
  return new Error(`cannot write ${quoted(path)}: ${messageOf(error)}`);
}
