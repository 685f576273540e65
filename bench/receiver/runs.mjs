/** Runs like an agent's: turns of ten runs, a third of them model calls, with a realistic word distribution. */

export const RUNS_PER_TRACE = 10;

const NAMES = ['answer', 'plan', 'model', 'search', 'tool', 'model', 'rerank', 'tool', 'model', 'reply'];
const FIRST_US = Date.UTC(2026, 10, 20) * 1_000;
const VOCABULARY = Array.from({ length: 20_000 }, (_, at) => wordOf(at));

/** Returns run `number` as a completed post with payloads of this total size. */
export function runOf(number, payloadBytes) {
  const root = number - (number % RUNS_PER_TRACE);
  const id = idOf(number);
  const rootId = idOf(root);
  const isModel = NAMES[number % RUNS_PER_TRACE] === 'model';
  const startUs = FIRST_US + number * 1_000;
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
  if (isModel) {
    fields.extra = { metadata: { ls_model_name: 'gpt-x', user: `user ${number % 100}` } };
    fields.outputs.usage_metadata = { input_tokens: random.below(2_000), output_tokens: random.below(500) };
  }
  return { kind: 'post', id, fields, attachments: [] };
}

/** Returns a patch that repeats the run's end. */
export function patchOf(number) {
  const endUs = FIRST_US + number * 1_000 + 5_000_000;
  return { kind: 'patch', id: idOf(number), fields: { end_time: isoOf(endUs), tags: ['later'] }, attachments: [] };
}

export function idOf(number) {
  const hex = number.toString(16).padStart(12, '0');
  return `0193b3a0-${hex.slice(-8, -4)}-7${hex.slice(-3)}-8000-${hex}`;
}

export function startOf(number) {
  return isoOf(FIRST_US + number * 1_000);
}

/** A word in few runs, and one in most. */
export const RARE_WORD = VOCABULARY.at(-1);
export const COMMON_WORD = VOCABULARY[0];

function segment(number) {
  return isoOf(FIRST_US + number * 1_000).replace(/[-:.]/g, '') + idOf(number);
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
class Random {
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
