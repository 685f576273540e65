import type { CallDescription } from '../instrument/plan.ts';
import { type Answer, type Fold, readerOf } from './answer.ts';
import { type Fields, fieldsOf, textOf } from './fields.ts';
import type { TracedMethod } from './sdk-client.ts';

/** What older versions of the SDK have. */
export const completionsMethod: Omit<TracedMethod, 'path'> = {
  name: 'anthropic.completions',
  runType: 'llm',
  describe: describeCompletion,
  reader: readerOf(completionAnswer, () => new CompletionFold()),
};

function describeCompletion(body: unknown): CallDescription {
  const { prompt, ...parameters } = fieldsOf(body);
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

function completionAnswer(completion: Fields): Answer {
  return { outputs: completion, model: textOf(completion.model) };
}

/** Each event is a completion with the next part of the text. */
class CompletionFold implements Fold {
  characters = 0;
  #last: Fields = {};
  #text = '';

  add(event: unknown, isFull: boolean): void {
    const { type, completion } = fieldsOf(event);
    if (type !== 'completion') return;
    this.#last = { ...fieldsOf(event) };
    const text = textOf(completion) ?? '';
    this.characters += text.length;
    if (!isFull) this.#text += text;
  }

  answer(): Answer {
    return completionAnswer(this.#last.type === undefined ? {} : { ...this.#last, completion: this.#text });
  }
}
