/**
 * Runs of an agent over a week: traces of ten runs, a third of them model calls, in threads of five traces, with a
 * realistic word distribution.
 */

export const RUNS_PER_TRACE = 10;
const TRACES_PER_THREAD = 5;
const USERS = 2_000;
/** One run in so many has the tag `rare`. */
const RARE_TAG_EVERY = 20_000;

export const NAMES = ['answer', 'plan', 'model', 'search', 'tool', 'model', 'rerank', 'tool', 'model', 'reply'];
const FIRST_US = Date.UTC(2026, 10, 20) * 1_000;
/** Time between the starts of two runs. A million runs take a week. */
const STEP_US = 604_800;
const VOCABULARY = Array.from({ length: 20_000 }, (_, at) => wordOf(at));

/** Returns run `number` as a completed post with payloads of this total size. */
export function runOf(number, payloadBytes) {
  const root = number - (number % RUNS_PER_TRACE);
  const id = idOf(number);
  const rootId = idOf(root);
  const isModel = NAMES[number % RUNS_PER_TRACE] === 'model';
  const startUs = FIRST_US + number * STEP_US;
  const random = new Random(number);
  const fields = {
    trace_id: rootId,
    dotted_order: number === root ? segment(root) : `${segment(root)}.${segment(number)}`,
    name: NAMES[number % RUNS_PER_TRACE],
    run_type: isModel ? 'llm' : 'chain',
    start_time: isoOf(startUs),
    end_time: isoOf(startUs + 1_000 + random.below(2_000_000)),
    session_name: `project ${number % 3}`,
    inputs: { question: random.text(payloadBytes / 2) },
    outputs: { answer: random.text(payloadBytes / 2) },
    ...(number === root ? {} : { parent_run_id: rootId }),
    ...(random.below(50) === 0 ? { error: 'RateLimitError: slow down' } : {}),
  };
  const trace = root / RUNS_PER_TRACE;
  fields.extra = {
    metadata: {
      thread_id: threadOf(trace),
      user_id: `user-${trace % USERS}`,
      environment: 'production',
      ...(isModel && { ls_model_name: 'gpt-x', request: requestOf(number) }),
    },
  };
  fields.tags = ['agent', ...(number % RARE_TAG_EVERY === 0 ? ['rare'] : [])];
  if (isModel) {
    fields.outputs.usage_metadata = { input_tokens: random.below(2_000), output_tokens: random.below(500) };
  }
  return { kind: 'post', id, fields, attachments: [] };
}

/** Number of the root of the large trace. Numbers of other runs are smaller. */
export const LARGE_TRACE = 10_000_000;
export const LARGE_TRACE_RUNS = 2_000;

/** Returns the runs of the large trace, which are children of its root. */
export function largeTraceOf(payloadBytes) {
  return Array.from({ length: LARGE_TRACE_RUNS }, (_, at) => {
    const run = runOf(LARGE_TRACE + at, payloadBytes);
    const { parent_run_id: _parent, ...fields } = run.fields;
    const isRoot = at === 0;
    const order = isRoot ? segment(LARGE_TRACE) : `${segment(LARGE_TRACE)}.${segment(LARGE_TRACE + at)}`;
    Object.assign(fields, { trace_id: idOf(LARGE_TRACE), dotted_order: order });
    return { ...run, fields: isRoot ? fields : { ...fields, parent_run_id: idOf(LARGE_TRACE) } };
  });
}

/** Returns a patch that repeats the run's end. */
export function patchOf(number) {
  const endUs = FIRST_US + number * STEP_US + 5_000_000;
  return { kind: 'patch', id: idOf(number), fields: { end_time: isoOf(endUs), tags: ['later'] }, attachments: [] };
}

export function idOf(number) {
  const hex = number.toString(16).padStart(12, '0');
  return `0193b3a0-${hex.slice(-8, -4)}-7${hex.slice(-3)}-8000-${hex}`;
}

/** Id of the thread of a trace. The traces of several threads alternate. */
export function threadOf(trace) {
  const block = 100 * TRACES_PER_THREAD;
  return `thread-${Math.floor(trace / block) * 100 + (trace % 100)}`;
}

export function requestOf(number) {
  return `request-${number}`;
}

export function startOf(number) {
  return isoOf(FIRST_US + number * STEP_US);
}

/** A word in few runs, and one in most. */
export const RARE_WORD = VOCABULARY.at(-1);
export const COMMON_WORD = VOCABULARY[0];

function segment(number) {
  return isoOf(FIRST_US + number * STEP_US).replace(/[-:.]/g, '') + idOf(number);
}

function isoOf(us) {
  const iso = new Date(Math.floor(us / 1_000)).toISOString().slice(0, -1);
  return `${iso}${String(us % 1_000).padStart(3, '0')}Z`;
}

function wordOf(at) {
  let word = '';
  for (let rest = at + 26; rest > 0; rest = Math.floor(rest / 26)) word += String.fromCharCode(97 + (rest % 26));
  return word + word.slice(0, at % 4);
}

/** Generates the same numbers for the same run in every process. */
export class Random {
  #state;

  constructor(seed) {
    this.#state = (seed + 1) * 2_654_435_761;
  }

  below(limit) {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  text(bytes) {
    const words = [];
    for (let length = 0; length < bytes; ) {
      // Squared, so that few words make up most of a text.
      const share = this.below(1_000_000) / 1_000_000;
      const word = VOCABULARY[Math.floor(share * share * VOCABULARY.length)];
      words.push(word);
      length += word.length + 1;
    }
    return words.join(' ').slice(0, bytes);
  }
}
