import type { ListQuery } from '../receiver/query/query.ts';
import type { RunStatus } from '../receiver/store/run-view.ts';
import { isoTimestamp, parseIsoTimestamp } from '../run/time.ts';
import { quoted } from './terminal-text.ts';
import { lastOf, readWords, type Words, webAddress } from './words.ts';

/** Where runs are looked for: at a receiver, in a file, or where `runspan dev` has them. */
export interface Place {
  readonly url: URL | undefined;
  readonly store: string | undefined;
}

/** `runspan traces …` */
export interface TracesInvocation {
  readonly kind: 'traces';
  readonly place: Place;
  readonly query: ListQuery;
  readonly isJson: boolean;
}

/** `runspan show …` */
export interface ShowInvocation {
  readonly kind: 'show';
  readonly place: Place;
  /** As given: the id of a trace or a run, or the beginning or end of that of a trace; the latest trace without one. */
  readonly id: string | undefined;
  /** Payloads are not cut. */
  readonly isFull: boolean;
  readonly isJson: boolean;
}

type Parsed<Invocation> =
  | Invocation
  | { readonly kind: 'help'; readonly topic: 'traces' | 'show' }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'traces' | 'show' };

const PLACE_USAGE = `  --url <address>   the receiver to ask (default: the one of runspan dev, else its file); its key,
                    where it has one, is taken from RUNSPAN_RECEIVER_KEY
  --store <file>    the file to look into (default RUNSPAN_STORE, else ~/.runspan/runs.db)`;

export const tracesUsage: string = `Usage: runspan traces [options]

Lists traces, the latest first: when each started, the end of its id, its root, and what the whole
comes to. With options, those that match all of them.

Options:
  --project <name>, --name <name>
                    of their root
  --status <status> of some run: pending, error, cancelled, interrupted or incomplete; more than
                    once: one of these; success is the status of their root
  --type <run type>, --model <model>
                    of some run; --status is then the status of that run, also success
  --tag <tag>       of their root; more than once: all of these
  --text <words>    that some run of theirs has; words in double quotes next to each other
  --since <when>    90s, 15m, 2h, 7d, or a day or time as 2026-01-31T09:00, by your clock where it
                    has no zone
  --limit <n>       at most so many, 1 to 1000 (default 20)
  --json            one object of JSON on a line for each trace
${PLACE_USAGE}
  -h, --help        print this

Exit code:
  0; 1 when there is nowhere to look; 2 for a mistake in the arguments
`;

export const showUsage: string = `Usage: runspan show [id] [options]

Shows a trace as a tree, with what went into its root and what came out, or one run with everything
that is known of it. The id is that of a trace or of a run; of a recent trace the first or last
characters will do, four at least. Without an id it is the latest trace.

Options:
  --full            payloads whole; else they are cut at 2000 characters
  --json            one object of JSON: a trace as it can be imported, or a run with its payloads
${PLACE_USAGE}
  -h, --help        print this

Exit code:
  0; 1 when it is not there, or there is nowhere to look; 2 for a mistake in the arguments
`;

const STATUSES: readonly string[] = [
  'pending',
  'success',
  'error',
  'cancelled',
  'interrupted',
  'incomplete',
] satisfies RunStatus[];

const LIMIT = 20;
const LIMIT_MAX = 1_000;

/** Reads the arguments after `runspan traces`. Never throws. */
export function parseTraces(argv: readonly string[], nowUs: number): Parsed<TracesInvocation> {
  const words = readWords(argv, {
    texts: [...PLACE_OPTIONS, ...FILTERS.keys(), 'status', 'tag', 'since', 'limit'],
    flags: ['json'],
  });
  if ('wrong' in words) return mistake('traces', words.wrong);
  const { values, flags, positionals } = words;
  if (flags.has('help')) return { kind: 'help', topic: 'traces' };
  if (positionals.length > 0)
    return mistake('traces', `unexpected ${quoted(positionals[0] ?? '')}; words to look for go after --text`);
  const query: ListQuery = { limit: LIMIT };
  for (const [option, field] of FILTERS) {
    const value = lastOf(words, option);
    if (value !== undefined) query[field] = value;
  }
  const status = values.get('status') ?? [];
  const strange = status.find((one) => !STATUSES.includes(one));
  if (strange !== undefined)
    return mistake('traces', `expected --status to be one of ${STATUSES.join(', ')}, got ${quoted(strange)}`);
  if (status.length > 0) query.status = status as RunStatus[];
  const tag = values.get('tag') ?? [];
  if (tag.length > 0) query.tag = tag;
  const since = lastOf(words, 'since');
  if (since !== undefined) {
    const startedFrom = momentOf(since, nowUs);
    if (startedFrom === undefined)
      return mistake(
        'traces',
        `expected --since to be like 15m, 2h, 7d, 2026-01-31 or 2026-01-31T09:00, got ${quoted(since)}`,
      );
    query.startedFrom = startedFrom;
  }
  const limit = lastOf(words, 'limit');
  if (limit !== undefined) {
    query.limit = /^\d{1,4}$/.test(limit) ? Number(limit) : 0;
    if (query.limit < 1 || query.limit > LIMIT_MAX)
      return mistake('traces', `expected --limit to be a number from 1 to ${LIMIT_MAX}`);
  }
  const place = placeOf(words);
  if (typeof place === 'string') return mistake('traces', place);
  return { kind: 'traces', place, query, isJson: flags.has('json') };
}

/** Reads the arguments after `runspan show`. Never throws. */
export function parseShow(argv: readonly string[]): Parsed<ShowInvocation> {
  const words = readWords(argv, { texts: PLACE_OPTIONS, flags: ['full', 'json'] });
  if ('wrong' in words) return mistake('show', words.wrong);
  const { flags, positionals } = words;
  if (flags.has('help')) return { kind: 'help', topic: 'show' };
  const [id, another] = positionals;
  if (another !== undefined) return mistake('show', `unexpected ${quoted(another)}`);
  if (id !== undefined && !/^[0-9a-f-]{4,36}$/i.test(id))
    return mistake('show', `expected an id, or four characters of it at least, got ${quoted(id)}`);
  const place = placeOf(words);
  if (typeof place === 'string') return mistake('show', place);
  return { kind: 'show', place, id: id?.toLowerCase(), isFull: flags.has('full'), isJson: flags.has('json') };
}

/** Options that are fields of a query as they stand. */
const FILTERS: ReadonlyMap<string, 'project' | 'name' | 'runType' | 'model' | 'text'> = new Map([
  ['project', 'project'],
  ['name', 'name'],
  ['type', 'runType'],
  ['model', 'model'],
  ['text', 'text'],
]);

const PLACE_OPTIONS: readonly string[] = ['url', 'store'];

function placeOf(words: Words): Place | string {
  const [address, store] = [lastOf(words, 'url'), lastOf(words, 'store')];
  if (address !== undefined && store !== undefined) return '--url and --store are two places to look; give one';
  if (address === undefined) return { url: undefined, store };
  const url = webAddress(address);
  if (url === undefined) return 'expected --url to be an http or https address';
  return { url, store };
}

const UNITS_US: Readonly<Record<string, number>> = { s: 1e6, m: 60e6, h: 3_600e6, d: 86_400e6 };

function momentOf(text: string, nowUs: number): string | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return isoTimestamp(Math.max(0, nowUs - Number(count) * (UNITS_US[unit] ?? 0)));
  return parseIsoTimestamp(text) === undefined ? localMoment(text) : text;
}

/** A day, or a time without a zone, as the page takes it and the list shows it: one of this machine. */
function localMoment(text: string): string | undefined {
  const [, day = '', time = '00:00'] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?$/.exec(text) ?? [];
  const at = new Date(`${day}T${time}`);
  // What no month has would go over into the next.
  if (at.getDate() !== Number(day.slice(-2))) return undefined;
  return isoTimestamp(Math.max(0, at.getTime() * 1_000));
}

function mistake<Topic extends 'traces' | 'show'>(topic: Topic, message: string) {
  return { kind: 'mistake', message, topic } as const;
}
