import { diffArrays } from 'diff';
import { exactJson, isFields } from '../../payload/fields.ts';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import type { Message, Part } from '../../services/message.ts';
import { firstTokenOf, latencyOf } from '../elements/figures.ts';
import { type DiffLine, diffLines, linesOf, textLines } from './line-diff.ts';

/** A field of two runs as text. A missing value is an empty text. */
export interface FieldDiff {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

/** A line of a message, or the role of a message that differs. */
export interface MessageLine {
  readonly kind: DiffLine['kind'] | 'message';
  readonly text: string;
}

const FIELDS_MAX = 500;

/** Returns the status, error, model, times, usage, tags and metadata of two runs. */
export function diffFields(before: RunDetails, after: RunDetails): FieldDiff[] {
  const [first, second] = [fieldsOfRun(before), fieldsOfRun(after)];
  const names = new Set([...first.keys(), ...second.keys()]);
  return [...names].map((name) => ({ name, before: first.get(name) ?? '', after: second.get(name) ?? '' }));
}

/**
 * Compares two conversations message by message. Messages that differ are paired in order if their roles are the same.
 * Each message starts with a line for its role.
 */
export function diffMessages(before: readonly Message[], after: readonly Message[]): MessageLine[] {
  const lines: MessageLine[] = [];
  const add = (first: Message | undefined, second: Message | undefined): void => {
    const changed = diffLines(linesOfMessage(first), linesOfMessage(second));
    const isSame = changed.every(({ kind }) => kind === 'same') && first !== undefined && second !== undefined;
    const { role, name = '' } = (first ?? second) as Message;
    lines.push({ kind: isSame ? 'same' : 'message', text: `${role} ${name}`.trim() }, ...changed);
  };
  const keys = [before, after].map((messages) => messages.map((message) => JSON.stringify(message)));
  let [left, right] = [0, 0];
  let removed: Message[] = [];
  const addRemoved = (): void => {
    for (const message of removed) add(message, undefined);
    removed = [];
  };
  for (const change of diffArrays(keys[0] as string[], keys[1] as string[])) {
    if (!change.added) addRemoved();
    for (let index = 0; index < change.value.length; index++) {
      if (change.removed) removed.push(before[left++] as Message);
      else {
        const message = after[right++] as Message;
        const isPaired = change.added && removed[0]?.role === message.role;
        add(isPaired ? removed.shift() : change.added ? undefined : before[left++], message);
      }
    }
  }
  addRemoved();
  return lines;
}

/** Returns the fields as text by path, for example `metadata.user_id`. */
function fieldsOfRun(run: RunDetails): Map<string, string> {
  const { name, status, model, error, usage, tags, extra } = run;
  const fields = new Map<string, string>();
  const add = (path: string, value: unknown): void => {
    if (value === undefined || fields.size >= FIELDS_MAX) return;
    if (isFields(value)) for (const [key, one] of Object.entries(value)) add(path === '' ? key : `${path}.${key}`, one);
    else fields.set(path, typeof value === 'string' ? value : exactJson(value));
  };
  const first_token = firstTokenOf(run);
  const { metadata } = extra ?? {};
  add('', { name, status, error, model, latency: latencyOf(run), first_token, usage, tags, metadata });
  return fields;
}

function linesOfMessage(message: Message | undefined): string[] {
  return (message?.parts ?? []).flatMap(linesOfPart);
}

function linesOfPart(part: Part): string[] {
  if (part.kind === 'text') return textLines(part.text);
  if (part.kind === 'call') return [`Tool call ${part.name}`, ...linesOf(part.input)];
  if (part.kind === 'result') return [part.isError ? 'Tool error' : 'Tool result', ...linesOf(part.value)];
  if (part.kind === 'media') return textLines(part.source);
  if (part.kind === 'other') return linesOf(part.value);
  return [part.kind, ...textLines(part.text)];
}
