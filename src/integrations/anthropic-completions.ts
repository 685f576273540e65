import type { CallDescription } from '../instrument/plan.ts';
import type { Run } from '../run/run.ts';
import { fieldsOf } from './fields.ts';
import type { StreamFold } from './model-stream.ts';

/** What is recorded of a call of `completions.create`, which older versions of the SDK have. */
export function describeCompletion([params]: readonly unknown[]): CallDescription {
  const { prompt, ...parameters } = fieldsOf(params);
  const { model, temperature, max_tokens_to_sample, stop_sequences } = parameters;
  return {
    inputs: { prompt },
    metadata: {
      ls_provider: 'anthropic',
      ls_model_type: 'llm',
      ls_model_name: model,
      ls_temperature: temperature,
      ls_max_tokens: max_tokens_to_sample,
      ls_stop: stop_sequences,
      ls_invocation_params: parameters,
    },
  };
}

/** Tells the run what a completion says. */
export function recordCompletion(run: Run, completion: unknown): void {
  const { model } = fieldsOf(completion);
  run.set({ outputs: completion, ...(typeof model === 'string' && { metadata: { response_model: model } }) });
}

/** Makes a completion of its events, each of which is one with the next part of the text. */
export class CompletionFold implements StreamFold {
  #last: object | undefined;
  #text = '';

  push(event: unknown): boolean {
    const { type, completion } = fieldsOf(event);
    if (type !== 'completion') return false;
    this.#last = { ...fieldsOf(event) };
    if (typeof completion === 'string') this.#text += completion;
    return true;
  }

  record(run: Run): void {
    if (this.#last !== undefined) recordCompletion(run, { ...this.#last, completion: this.#text });
  }
}
