import type { Answer, Fold } from './answer.ts';
import { addDelta, copyOf } from './delta.ts';
import { emptyFields, type Fields, fieldsOf, isFields } from './fields.ts';

/**
 * Chunks of a chat completion, or of a text completion, put together as the service would have answered at once: choices
 * by their index, tool calls by theirs with the arguments joined, usage from whichever chunk has it.
 */
export class ChoicesFold implements Fold {
  characters = 0;
  readonly #read: (answer: Fields) => Answer;
  readonly #answer: Fields = emptyFields();
  readonly #choices = new Map<unknown, Fields>();

  constructor(read: (answer: Fields) => Answer) {
    this.#read = read;
  }

  add(chunk: unknown, isFull: boolean): void {
    for (const [key, value] of Object.entries(fieldsOf(chunk))) {
      if (key === 'choices') this.#addChoices(value, isFull);
      else if (value !== null || this.#answer[key] === undefined) this.#answer[key] = copyOf(value);
    }
  }

  answer(): Answer {
    const { object, ...rest } = this.#answer;
    const choices = [...this.#choices.values()].sort((a, b) => Number(a.index) - Number(b.index));
    return this.#read({
      ...rest,
      object: object === 'chat.completion.chunk' ? 'chat.completion' : object,
      choices: choices.map(asAnswered),
    });
  }

  #addChoices(choices: unknown, isFull: boolean): void {
    if (!Array.isArray(choices)) return;
    for (const choice of choices) {
      const { delta, index = 0, ...rest } = fieldsOf(choice);
      const known = this.#choices.get(index) ?? Object.assign(emptyFields(), { index });
      this.#choices.set(index, known);
      this.characters += addDelta(isFull ? emptyFields() : known, rest);
      if (isFull) known.finish_reason = rest.finish_reason ?? known.finish_reason;
      if (!isFields(delta)) continue;
      if (!isFields(known.message)) known.message = emptyFields();
      this.characters += addDelta(isFull ? emptyFields() : (known.message as Fields), delta);
    }
  }
}

/** In an answer that comes at once tool calls have no index; their place says it. */
function asAnswered(choice: Fields): Fields {
  const message = choice.message;
  if (!isFields(message) || !Array.isArray(message.tool_calls)) return choice;
  const calls = [...message.tool_calls].sort((a, b) => Number(fieldsOf(a).index) - Number(fieldsOf(b).index));
  return { ...choice, message: { ...message, tool_calls: calls.map(withoutIndex) } };
}

function withoutIndex(call: unknown): unknown {
  if (!isFields(call)) return call;
  const { index: _, ...rest } = call;
  return rest;
}
