/**
 * Runs of a chat agent over a week, 2.8 KB each: traces of ten runs, in threads of five turns. As in real conversations,
 * model calls repeat the system prompt, earlier messages and documents, and ids are random.
 */
import { NAMES, Random, RUNS_PER_TRACE, requestOf, threadOf } from './runs.mjs';

const FIRST_MS = Date.UTC(2026, 10, 1);
export const WEEK_MS = 7 * 86_400_000;
const TURNS = 5;
const USERS = 2_000;
const DOCUMENTS = 50_000;
/** One trace in so many has the tag `rare`, and contains the rare word. */
const RARE_EVERY = 2_000;
export const RARE_WORD = 'zanzibar';
/** Longer than the windows of compressors, so that few of its parts repeat within them. */
const PROSE = new Random(1).text(16_000_000);
const TYPES = { answer: 'chain', plan: 'chain', model: 'llm', search: 'retriever', tool: 'tool', reply: 'parser' };
/** Runs that take longer than the exporter's `startDelayMs`, so that a post and a patch are sent. */
const isSlow = (number) => number % RUNS_PER_TRACE === 0 || nameOf(number) === 'model';

/** Returns the operations of a request: posts of these runs, and patches of slow runs of the request before. */
export function operationsOf({ first, end }, before, total) {
  const posts = numbers(first, end).map((number) => {
    const { id, fields } = runOf(number, total);
    if (!isSlow(number)) return { kind: 'post', id, fields };
    const { outputs: _outputs, end_time: _end, error: _error, ...started } = fields;
    return { kind: 'post', id, fields: started };
  });
  const patches = numbers(before.first, before.end).filter(isSlow);
  return [...posts, ...patches.map((number) => ({ kind: 'patch', ...patchOf(runOf(number, total)) }))];
}

function patchOf({ id, fields }) {
  const { inputs: _inputs, extra: _extra, tags: _tags, session_name: _project, ...ended } = fields;
  return { id, fields: ended };
}

/** Returns run `number` of `total` with all fields. */
export function runOf(number, total) {
  const root = number - (number % RUNS_PER_TRACE);
  const trace = root / RUNS_PER_TRACE;
  const name = nameOf(number);
  const random = new Random(number);
  const startMs = startOf(number, total);
  const end_time = iso(startMs + (isSlow(number) ? 2_000 : 1) + random.below(3_000));
  const order = `${segment(root, total)}.${segment(number, total)}`;
  return {
    id: idOf(number, total),
    fields: {
      trace_id: idOf(root, total),
      dotted_order: number === root ? segment(root, total) : order,
      ...(number !== root && { parent_run_id: idOf(root, total) }),
      name,
      run_type: TYPES[name] ?? 'chain',
      start_time: iso(startMs),
      end_time,
      session_name: `project ${trace % 3}`,
      ...(random.below(50) === 0 && { error: 'RateLimitError: slow down' }),
      extra: {
        metadata: {
          thread_id: threadOf(trace),
          user_id: `user-${trace % USERS}`,
          environment: 'production',
          ...(name === 'model' && { ls_model_name: 'gpt-x', request: requestOf(number) }),
        },
      },
      tags: ['agent', ...(number === root && trace % RARE_EVERY === 0 ? ['rare'] : [])],
      ...payloadsOf(name, trace, number, random),
    },
  };
}

function payloadsOf(name, trace, number, random) {
  const turn = Math.floor(trace / 100) % TURNS;
  const history = numbers(Math.max(0, turn - 2), turn).flatMap((at) => exchange(trace - (turn - at) * 100));
  const [question, answer] = exchange(trace);
  const step = number % RUNS_PER_TRACE;
  // Squared, so that few documents make up most results.
  const found = Math.floor((new Random(trace * 13 + 5).below(1_000_000) / 1_000_000) ** 2 * DOCUMENTS);
  const documents = numbers(step, step + 3).map((at) => documentOf(found + at + step));
  if (name === 'answer') return { inputs: { messages: [...history, question] }, outputs: answer };
  if (name !== 'model') return { inputs: { query: question.content }, outputs: { documents } };
  const messages = [systemOf(trace % 3), ...history, question, { role: 'tool', content: documents[0].text }];
  const input_tokens = 400 + random.below(1_000);
  return { inputs: { messages }, outputs: { ...answer, usage_metadata: { input_tokens, output_tokens: 60 } } };
}

function exchange(trace) {
  const random = new Random(trace * 31 + 7);
  const rare = trace % RARE_EVERY === 0 ? ` ${RARE_WORD}` : '';
  return [
    { role: 'user', content: textOf(random, 60 + random.below(200)) },
    { role: 'assistant', content: textOf(random, 200 + random.below(500)) + rare },
  ];
}

function documentOf(number) {
  const random = new Random((number % DOCUMENTS) + 1_000_000_007);
  return { id: `doc-${number % DOCUMENTS}`, score: random.below(1_000) / 1_000, text: textOf(random, 500) };
}

function systemOf(project) {
  return { role: 'system', content: textOf(new Random(project + 2_000_000_011), 900) };
}

/** Returns a part of a long text, because generating each text would take longer than storing it. */
function textOf(random, length) {
  const at = random.below(PROSE.length - length);
  return PROSE.slice(at, at + length);
}

/** Returns a version 7 UUID. */
export function idOf(number, total) {
  const random = new Random(number * 3 + 1);
  const hex = (digits) =>
    random
      .below(16 ** digits)
      .toString(16)
      .padStart(digits, '0');
  const time = Math.floor(startOf(number, total)).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-a${hex(3)}-${hex(6)}${hex(6)}`;
}

/** Returns the start of a run in milliseconds. */
export function startOf(number, total) {
  return FIRST_MS + (number / total) * WEEK_MS;
}

export const iso = (ms) => `${new Date(Math.floor(ms)).toISOString().slice(0, -1)}000Z`;

const segment = (number, total) => iso(startOf(number, total)).replace(/[-:.]/g, '') + idOf(number, total);

const nameOf = (number) => NAMES[number % RUNS_PER_TRACE];

const numbers = (first, end) => Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at);
