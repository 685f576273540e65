import { cut } from '../base/text.ts';
import { isStreamed } from '../integrations/fetch/exchange.ts';
import { type Fields, isFields, textOf } from '../payload/fields.ts';
import { parametersOf, toolsOf } from '../services/call-settings.ts';
import { messagesOfInputs } from '../services/conversation.ts';
import type { RecordedCall, ReplayMode } from './fixture.ts';

/** A model call of the replayed program. */
export type ReplayedCall = Pick<RecordedCall, 'call' | 'request'>;

export interface Match {
  readonly index: number;
  /** Results of tools that differ from the recorded ones. */
  readonly notes: readonly string[];
}

/** Returns the recorded call that answers a request, or undefined. `used` contains the calls that were answered before. */
export function findCall(
  calls: readonly RecordedCall[],
  used: ReadonlySet<number>,
  replayed: ReplayedCall,
  mode: ReplayMode,
): Match | undefined {
  const open = [...calls.entries()].filter(([index, { call }]) => !used.has(index) && call === replayed.call);
  const same = open.find(([, { request }]) => differences(request, replayed.request).length === 0);
  if (same !== undefined) return { index: same[0], notes: [] };
  if (mode === 'strict') return undefined;
  const place = placeOf(replayed);
  const asked = askedBy(replayed.request);
  const [nearest] = open
    .filter(([, call]) => placeOf(call) === place)
    .map(([index, { request }]) => ({ index, request, count: differences(askedBy(request), asked).length }))
    .sort((a, b) => a.count - b.count);
  return nearest && { index: nearest.index, notes: differences(nearest.request, replayed.request) };
}

/** Describes why no recorded call answers a request: its differences from the most similar call. */
export function mismatchText(
  calls: readonly RecordedCall[],
  used: ReadonlySet<number>,
  replayed: ReplayedCall,
): string {
  const compared = [...calls.entries()]
    .filter(([, { call }]) => call === replayed.call)
    .map(([index, { request, below }]) => ({ index, below, lines: differences(request, replayed.request) }))
    .sort((a, b) => Number(used.has(a.index)) - Number(used.has(b.index)) || a.lines.length - b.lines.length);
  const [nearest] = compared;
  if (nearest === undefined) return `no ${replayed.call} call is recorded`;
  const { index, below, lines } = nearest;
  if (used.has(index)) return `all ${compared.length} recorded ${replayed.call} calls have been answered already`;
  const more = lines.length > LINES_MAX ? [`… and ${lines.length - LINES_MAX} more differences`] : [];
  return [
    `no recorded call matches; the nearest is call ${index + 1}${below === '' ? '' : ` below ${below}`}:`,
    ...[...lines.slice(0, LINES_MAX), ...more].map((line) => `  ${line}`),
  ].join('\n');
}

/** Maximum number of differences in a message, and length of a value in characters. */
const [LINES_MAX, VALUE_MAX] = [20, 200];

/** Returns one line per difference, for example `messages[2].content: recorded "4", got "5"`. */
export function differences(recorded: unknown, got: unknown, path = ''): string[] {
  if (Array.isArray(recorded) && Array.isArray(got)) {
    const length = Math.max(recorded.length, got.length);
    return Array.from({ length }, (_, at) => differences(recorded[at], got[at], `${path}[${at}]`)).flat();
  }
  if (isFields(recorded) && isFields(got)) {
    const keys = new Set([...Object.keys(recorded), ...Object.keys(got)]);
    return [...keys].flatMap((key) => differences(recorded[key], got[key], path === '' ? key : `${path}.${key}`));
  }
  if (Object.is(recorded, got)) return [];
  const [one = '', other] = [textOf(recorded), textOf(got)];
  let same = 0;
  while (same < one.length && one[same] === other?.[same]) same++;
  // If two texts differ only late, they are shown from just before the difference.
  const start = same < VALUE_MAX / 2 ? 0 : same - VALUE_MAX / 4;
  const [before, after] = [recorded, got].map((value) => shown(textOf(value)?.slice(start) ?? value));
  return [`${path}${start === 0 ? '' : ` from character ${start}`}: recorded ${before}, got ${after}`];
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : cut(JSON.stringify(value), VALUE_MAX);
}

/** The place of a call in an agent: its model, the names of its tools, the number of earlier answers, and if it streams. */
function placeOf({ call, request }: ReplayedCall): string {
  const names = toolsOf(request).map(({ name }) => name);
  const answers = messagesOfInputs(request)?.filter(({ role }) => role === 'assistant');
  return JSON.stringify([request.model, names.sort(), answers?.length, isStreamed(call, request)]);
}

/** Returns a request without the results of tools. */
function askedBy(request: Fields): Fields {
  const messages = messagesOfInputs(request)?.map(({ role, parts }) => [
    role,
    parts.map((part) => (part.kind === 'result' ? { id: part.id, name: part.name } : part)),
  ]);
  return messages === undefined ? request : { ...parametersOf({ inputs: request }), messages };
}
