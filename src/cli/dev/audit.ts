import { open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Command } from '@commander-js/extra-typings';
import { messageOf, visible, visibleJson } from '../../base/text.ts';
import type { Scope } from '../../receiver/domain/query.ts';
import type { RunOperation } from '../../receiver/domain/run-message.ts';
import { createReceiver } from '../../receiver/receiver.ts';
import { MemoryStore } from '../../receiver/store/memory-store.ts';
import type { StoreChange } from '../../receiver/store/store.ts';
import { type CommandContext, CommandFailure, type Ending, type Output, UsageError } from '../command-line.ts';
import { samplingOff } from '../doctor/settings.ts';
import { quoted } from '../terminal-text.ts';
import { type ChildCommand, childCommand } from './child.ts';
import { environmentFor, runTraced } from './traced-child.ts';

const HELP = `
If the code of the command sets an endpoint, its runs are sent there and are not shown.

Exit code:
  the exit code or signal of the command; 1 if the file cannot be written; 2 for invalid arguments;
  126 or 127 if the command cannot be started`;

interface AuditOptions {
  readonly json?: true | undefined;
  readonly output?: string | undefined;
}

export function define(command: Command, context: CommandContext): void {
  command
    .usage('[options] -- command...')
    .description(
      'Runs a command, and prints each post and patch that it sends, after sampling and redaction. A receiver in this process accepts the runs and forwards nothing. The command uses the standard streams directly; posts and patches are printed on standard error.',
    )
    .argument('[command...]')
    .option('--json', 'print each post and patch completely, as one line of JSON')
    .option('--output <file>', 'write the complete posts and patches to this file; an existing file is replaced')
    .addHelpText('after', HELP)
    .action(async (words, options) => {
      const child = childCommand(words, context);
      if (child === undefined) throw new UsageError('expected -- and a command');
      context.endAs(await audit(child, options, context.stderr));
    });
}

async function audit(command: ChildCommand, { json, output }: AuditOptions, stderr: Output): Promise<Ending> {
  const file = output === undefined ? undefined : await openFile(output);
  const written = file && finished(file).catch((error) => notWritten(output ?? '', error));
  const store = new AuditStore((operation) => {
    const text = json ? recordJson(operation) : recordLines(operation, file === undefined).join('\n');
    (file ?? stderr).write(`${text}\n`);
  });
  const receiver = await createReceiver({ store });
  // The receiver closes when the command ends, so spooled runs would stay on disk.
  const environment = { ...environmentFor(receiver.url), RUNSPAN_DURABILITY: 'memory' };
  const ending = await runTraced(command, environment, store).finally(() => receiver.close());
  file?.end();
  const problem = await written;
  if (problem !== undefined) throw problem;
  stderr.write(`runspan audit: ${summaryOf(store)}\n`);
  return ending;
}

/** A store that prints and counts the run updates it receives, but saves none. */
class AuditStore extends MemoryStore {
  readonly counts = { posts: 0, patches: 0, attachments: 0, bytes: 0 };
  readonly #show: (operation: RunOperation) => void;
  readonly #listeners = new Set<(change: StoreChange) => void>();

  constructor(show: (operation: RunOperation) => void) {
    super();
    this.#show = show;
  }

  override async apply(_scope: Scope, operations: readonly RunOperation[]): Promise<undefined> {
    for (const operation of operations) {
      this.counts[operation.kind === 'post' ? 'posts' : 'patches'] += 1;
      this.counts.attachments += operation.attachments.length;
      this.counts.bytes += recordBytes(operation);
      this.#show(operation);
    }
    for (const listener of this.#listeners) listener({ cursor: '0', traceIds: [] });
  }

  override subscribe(_scope: Scope, listener: (change: StoreChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** Returns the size of a run update and its attachments in bytes. */
function recordBytes({ fields, attachments }: RunOperation): number {
  const sizes = Object.values(fields).map((value) => Buffer.byteLength(JSON.stringify(value)));
  return [...sizes, ...attachments.map(({ bytes }) => bytes.length)].reduce((sum, size) => sum + size, 0);
}

/** Maximum characters per field on standard error. An output file contains complete fields. */
const SHOWN_MAX = 2_000;

/** Returns one line with the size in bytes per field and attachment. */
export function recordLines(operation: RunOperation, isShortened: boolean): string[] {
  const { kind, id, fields, attachments } = operation;
  const { name = '', run_type: type = '' } = fields;
  const lines = [`${kind} ${id}  ${[name, type].filter(Boolean).map(visible).join(', ')}`];
  for (const [field, value] of Object.entries(fields)) {
    const json = JSON.stringify(value);
    const shown = isShortened && json.length > SHOWN_MAX ? `${json.slice(0, SHOWN_MAX)}…` : json;
    lines.push(line(field, Buffer.byteLength(json), visible(shown)));
  }
  for (const { name, mimeType, bytes } of attachments) {
    lines.push(line('attachment', bytes.length, `${visible(JSON.stringify(name))} ${visible(mimeType)}`));
  }
  return lines;
}

function line(label: string, bytes: number, text: string): string {
  return `  ${label.padEnd(13)} ${String(bytes).padStart(7)}  ${text}`;
}

/** Returns the run update as one line of JSON, without the bytes of its attachments. */
export function recordJson(operation: RunOperation): string {
  const { kind, id, fields } = operation;
  const attachments = operation.attachments.map(({ name, mimeType, bytes }) => ({
    name,
    mime_type: mimeType,
    size: bytes.length,
  }));
  return visibleJson(JSON.stringify({ kind, id, bytes: recordBytes(operation), fields, attachments }));
}

function summaryOf({ counts: { posts, patches, attachments, bytes } }: AuditStore): string {
  if (posts + patches > 0) {
    return `posts: ${posts}, patches: ${patches}, attachments: ${attachments}, bytes: ${bytes}; nothing was forwarded`;
  }
  const variable = samplingOff();
  if (variable !== undefined) return `no runs arrived: ${variable} is 0, so no run is recorded`;
  return 'no runs arrived; check whether the program sets `endpoint` in its code, or calls process.exit() before its runs are sent';
}

/** Only the owner can read the output file, because run data may be confidential. */
const OWNER_ONLY = 0o600;

async function openFile(path: string): Promise<Writable> {
  try {
    const file = await open(path, 'w', OWNER_ONLY);
    // Opening an existing file does not change its mode.
    if ((await file.stat()).isFile()) await file.chmod(OWNER_ONLY);
    return file.createWriteStream();
  } catch (error) {
    throw notWritten(path, error);
  }
}

function notWritten(path: string, error: unknown): Error {
  return new CommandFailure(`cannot write ${quoted(path)}: ${messageOf(error)}`);
}
