import type { Answer, Fold } from './answer.ts';
import { addDelta, copyOf } from './delta.ts';
import { emptyFields, type Fields, fieldsOf, isFields, listOf } from './fields.ts';

/** Random text of no meaning in each chunk, so that its size does not give away what it says. */
const PADDING = 'obfuscation';

/** What of a choice goes on from chunk to chunk, beside its message; a verdict on the content is told whole each time. */
const GOING_ON = new Set(['text', 'logprobs']);

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
      else if (key !== PADDING) tell(this.#answer, key, value);
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
    for (const choice of listOf(choices)) {
      const { index = 0, ...fields } = fieldsOf(choice);
      const known = this.#choices.get(index) ?? Object.assign(emptyFields(), { index });
      this.#choices.set(index, known);
      for (const [key, value] of Object.entries(fields)) {
        if (key === 'delta') this.#addMessage(known, value, isFull);
        else if (GOING_ON.has(key)) this.characters += addDelta(isFull ? emptyFields() : known, { [key]: value });
        else tell(known, key, value);
      }
    }
  }

  #addMessage(choice: Fields, delta: unknown, isFull: boolean): void {
    if (!isFields(delta)) return;
    if (!isFields(choice.message)) choice.message = emptyFields();
    this.characters += addDelta(isFull ? emptyFields() : (choice.message as Fields), delta);
  }
}

/** What is told anew takes the place of what was told before, unless it says nothing. */
function tell(target: Fields, key: string, value: unknown): void {
  if (value !== null || target[key] === undefined) target[key] = copyOf(value);
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
