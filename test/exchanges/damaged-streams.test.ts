// What is recorded of streams that services, gateways and networks damage. In each stream, all texts are different words.
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { modelReader } from '#src/integrations/ai-sdk/answer.ts';
import { bodyReader } from '#src/integrations/fetch/body.ts';
import { readerNamed } from '#src/integrations/fetch/dialects.ts';
import type { Fields } from '#src/payload/fields.ts';
import type { AnswerReader, Fold } from '#src/services/answer.ts';
import { conversation } from '#src/services/bedrock/converse.ts';
import { randomFrom } from '../faults/random.ts';
import { cases } from '../support/campaign.ts';
import { majors } from './ai-sdk.ts';
import { ANSWER, type Answer, type Format } from './exchange.ts';
import { formats } from './table.ts';

// A property takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const SSE = 'text/event-stream';
/** The content type of a body. Undefined if the recorder gets events from the client. */
const typeOf = ({ isLines, name }: Format): string | undefined =>
  isLines ? 'application/x-ndjson' : name === 'bedrock.converse' ? undefined : SSE;
const readerOf = ({ name }: Format): AnswerReader => readerNamed(name) ?? conversation();

function generator(seed: number) {
  const random = randomFrom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  let last = 0;
  const word = (): string => `<${String(++last).padStart(5, '0')}é>`;
  const words = (): string[] => Array.from({ length: 1 + below(3) }, word);
  const answer = (): Answer => ({
    text: words(),
    thought: words(),
    calls: Array.from({ length: below(3) }, () => ({ id: word(), name: word(), words: [word(), word()] })),
    unknown: word(),
  });
  return { below, answer, isDrawn: (part: number) => random() < part };
}
type Generator = ReturnType<typeof generator>;

/** Returns what is recorded of a stream: of its bytes, which arrive in pieces, or of events, which the client reuses. */
function recorded(format: Format, events: readonly Fields[], { below, isDrawn }: Generator, cut = 0): Fields {
  const [reader, type] = [readerOf(format), typeOf(format)];
  const isBody = type !== undefined && (cut > 0 || isDrawn(0.7));
  const fold = (isBody ? bodyReader(reader, type) : reader).fold?.() as Fold;
  const prefix = type === SSE ? 'data: ' : '';
  const text = events.map((event) => `${prefix}${JSON.stringify(event)}\n\n`).join('');
  const bytes = new TextEncoder().encode(text.slice(0, text.length - cut));
  for (let at = 0; isBody && at < bytes.length && !fold.isComplete; ) {
    const end = at + 1 + below(900);
    fold.add(bytes.subarray(at, end), false);
    at = end;
  }
  for (const event of isBody ? [] : copyOf(events)) {
    if (!fold.isComplete) fold.add(event, false);
    eachObject(event, (object) => Object.keys(object).forEach((key) => void delete object[key]));
  }
  const answer = reader.read(fold.result());
  const isEnded = fold.isComplete === true;
  return JSON.parse(JSON.stringify({ ...answer, error: fold.error ?? answer.error, isEnded }));
}

function eachObject(value: unknown, change: (object: Fields) => void): void {
  if (typeof value !== 'object' || value === null) return;
  for (const item of Object.values(value)) eachObject(item, change);
  if (!Array.isArray(value)) change(value as Fields);
}

const copyOf = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));
const wordsIn = (value: unknown): string[] => (JSON.stringify(value) ?? '').match(/<\d{5}é>/g) ?? [];
const INDEX = /^(index|.*_index|contentBlockIndex)$/;
const KEPT = /^(type|event_type|.*index|contentBlockIndex|jsonPath|done)$/;
const LISTS_KEPT = /^(choices|candidates|parts|tool_calls|partialArgs)$/;

/** Returns an event that says nothing: empty texts, nulls and zeros in the form of another event. */
function blank(event: Fields, { isDrawn }: Generator): Fields {
  const copy = copyOf(event);
  eachObject(copy, (object) => {
    for (const [key, value] of Object.entries(object)) {
      if (KEPT.test(key) || typeof value === 'boolean') continue;
      if (Array.isArray(value)) object[key] = LISTS_KEPT.test(key) ? value : [];
      else if (typeof value !== 'object') object[key] = isDrawn(0.3) ? null : typeof value === 'number' ? 0 : '';
    }
  });
  return copy;
}

const NAMES = /^(id|name|role|model|object|status|(finish|stop)_reason|toolUseId|modelVersion|.*tokens|.*Count)$/i;

/** Adds the names, reasons and counts that a blank event has and another lacks. */
function addNames(event: Fields, empty: Fields): void {
  if ((event.type ?? empty.type) !== empty.type) return;
  for (const [key, value] of Object.entries(empty)) {
    const own = event[key];
    if (own === undefined && NAMES.test(key) && !value) event[key] = value;
    else if (typeof own === 'object' && own !== null && value) addNames(own as Fields, value as Fields);
  }
}

/** Damage that takes nothing away and adds no text. */
function neutral(events: readonly Fields[], g: Generator): Fields[] {
  const damaged = copyOf([...events]);
  for (const event of damaged.slice(1)) {
    for (const [key, value] of Object.entries(event)) {
      if (/^(id|model|object|created|modelVersion)$/.test(key) && value === events[0]?.[key] && g.isDrawn(0.3))
        delete event[key];
    }
    const { output } = (event.response ?? {}) as { output?: unknown[] };
    if (event.type === 'response.completed' && g.isDrawn(0.5)) output?.splice(g.below(output.length));
  }
  return damaged.flatMap((event, at) => {
    const source = events[g.below(at + 1)] as Fields;
    const empty = /"new/.test(JSON.stringify(source)) ? {} : blank(source, g);
    if (g.isDrawn(0.4)) addNames(event, empty);
    return g.isDrawn(0.4) ? [event, empty] : [event];
  });
}

/** Damage after which only the place of a text is unknown. */
function ambiguous(events: readonly Fields[], { below, isDrawn }: Generator): Fields[] {
  const damaged = copyOf([...events]);
  const change = [() => undefined, () => 0, () => below(4)][below(3)] as () => unknown;
  eachObject(damaged, (object) => {
    for (const key of Object.keys(object)) {
      if (INDEX.test(key) && isDrawn(0.8)) object[key] = change();
    }
    const { content } = object;
    if (typeof content === 'string' && isDrawn(0.3)) object.content = content && [{ type: 'text', text: content }];
  });
  return damaged;
}

test.each(Object.entries(formats))(
  'what a damaged stream of %s contains is recorded once',
  (_, format) => {
    const type = typeOf(format);
    const property = (seed: number): void => {
      const g = generator(seed);
      const events = format.events(g.answer(), format.counts) as Fields[];
      const right = recorded(format, events, g);
      const expectWords = (record: Fields, sent: readonly unknown[]): void => {
        expect(wordsIn(record).sort()).toEqual([...new Set(wordsIn(sent))].sort());
      };
      expectWords(right, events);
      expect(recorded(format, neutral(events, g), g)).toEqual(right);
      expectWords(recorded(format, ambiguous(events, g), g), events);
      // A block of Bedrock has no type that tells where the next one begins.
      const kept = g.isDrawn(0.5) ? /"name":|[._-]start|added/ : /^$/;
      const unindexed = events.map((event) => {
        const json = JSON.stringify(event);
        return JSON.parse(json, (key, value) => (INDEX.test(key) && !kept.test(json) ? undefined : value));
      });
      if (type !== undefined) expect(recorded(format, unindexed, g)).toEqual(right);
      if (format.name === 'openai.responses') {
        const deltas = events.filter(({ type }) => !/\.(done|completed)$/.test(`${type}`));
        expectWords(recorded(format, deltas, g), events);
      }
      const rest = events.filter(() => g.isDrawn(0.8));
      expectWords(recorded(format, rest, g), rest);
      const before = rest.slice(0, g.below(rest.length));
      // An error is the last event, whatever follows it and if nothing does.
      const ended = [...before, format.error[0] as Fields];
      const failed = recorded(format, ended, g);
      expect(failed).toMatchObject({ error: format.error[1], isEnded: true });
      expectWords(failed, before);
      expect(recorded(format, [...ended, ...rest], g)).toEqual(failed);
      // The end of an event is cut off.
      if (type !== undefined)
        expectWords(recorded(format, rest.slice(0, before.length + 1), g, 3 + g.below(20)), before);
    };
    // Each case has seven damaged streams, or five of events.
    fc.assert(fc.property(fc.nat(), property), { numRuns: cases(1_000) });
  },
  180_000,
);

const readers: (readonly [string, AnswerReader, readonly Fields[]])[] = [
  ...Object.entries(formats).map(
    ([name, format]) => [name, readerOf(format), format.events(ANSWER, {}) as Fields[]] as const,
  ),
  ...majors.map(({ title, stream }) => [`the AI SDK, ${title}`, modelReader, stream as Fields[]] as const),
];
test.each(readers)('a full record of a stream of %s counts all characters and keeps no text', (_, reader, events) => {
  // The last events of a response repeat what the events before them contain.
  const once = events.filter(({ type }) => !/^response.*(done|completed)$/.test(`${type}`));
  const [kept, full] = [false, true].map((isFull) => {
    const fold = reader.fold?.() as Fold;
    const counts = once.map((event) => fold.add(event, isFull));
    return { counts, text: JSON.stringify(reader.read(fold.result()).outputs) };
  });
  expect(full?.counts).toEqual(kept?.counts);
  expect(kept?.text).toContain('rains');
  expect(full?.text).not.toContain('rains');
});
