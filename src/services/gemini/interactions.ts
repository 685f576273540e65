import {
  defined,
  emptyFields,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  mapped,
  parsedJson,
  textOf,
  without,
} from '../../payload/fields.ts';
import { type Fold, serviceError, wholeReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { addDelta, hasOnlyType, itemFor, update, updated, withoutIndex } from '../deltas.ts';
import { blockWithDataUri, withField } from '../media.ts';
import { withSystem } from '../request.ts';
import { interactionUsage } from './usage.ts';

/** Fields of an answer that repeat the request. */
const REPEATED: ReadonlySet<string> = new Set(['input', 'system_instruction', 'tools']);

/**
 * Reads the Interactions API of Gemini: https://ai.google.dev/api/interactions-api. The first version of the API lists the
 * contents of an answer in `outputs`, and later ones its `steps`.
 */
export const geminiInteraction: CallReader = callReader(
  'gemini.interactions',
  {
    modelType: 'chat',
    inputKeys: ['input', 'system_instruction'],
    inputs: ({ input, system_instruction }) => ({
      messages: withSystem(textOf(system_instruction), messagesOf(input)),
    }),
    settings: ['generation_config'],
  },
  wholeReader(
    ['steps', 'outputs', 'status'],
    (answer) => ({
      outputs: defined({
        ...without(answer, REPEATED),
        steps: mapped(answer.steps, withMedia),
        outputs: mapped(answer.outputs, withMedia),
      }),
      model: textOf(answer.model) ?? textOf(answer.agent),
      usage: interactionUsage(answer.usage),
      error: serviceError(answer) ?? failureOf(answer),
    }),
    interactionFold,
  ),
);

const CONTENT: ReadonlySet<unknown> = new Set(['text', 'image', 'audio', 'document', 'video']);

function isContent(value: unknown): boolean {
  return CONTENT.has(fieldsOf(value).type);
}

/** Returns the messages and steps of an input, which is a text, a content, or a list of contents, steps or turns. */
function messagesOf(input: unknown): unknown[] {
  if (input === undefined) return [];
  const list = Array.isArray(input) ? input : [input];
  const content = list.map(withMedia);
  if (list.every(isContent)) return [{ role: 'user', content }];
  return content.map((one) => {
    if (typeof one === 'string') return { role: 'user', content: one };
    return isContent(one) ? { role: 'user', content: [one] } : one;
  });
}

/** Converts the base64 in a content, or in the contents of a step, to data URIs. */
function withMedia(item: unknown): unknown {
  const lists = ['content', 'summary', 'result'];
  return lists.reduce(
    (step, key) => withField(step, key, mapped(fieldsOf(step)[key], blockWithDataUri)),
    isContent(item) ? blockWithDataUri(item) : item,
  );
}

function failureOf({ status, errors }: Fields): string | undefined {
  return status === 'failed' ? (serviceError({ error: listOf(errors)[0] }) ?? 'failed') : undefined;
}

function interactionFold(): Fold {
  const answer = emptyFields();
  const items: unknown[] = [];
  let key = 'steps';
  const itemOf = ({ type, id, name }: Fields, index: unknown): Fields => {
    const item = itemFor(items, { index });
    if ((item.id ?? id) === (id ?? item.id)) return item;
    const other = itemFor(items, { index, type, id, name });
    other.type ??= item.type;
    return other;
  };
  const fold = {
    isComplete: false,
    add(given: unknown, isFull: boolean): number {
      const event = fieldsOf(given);
      const { interaction, status, error, usage = fieldsOf(event.metadata).total_usage, index, delta } = event;
      const type = textOf(event.event_type) ?? '';
      if (type.startsWith('content.') || Array.isArray(fieldsOf(interaction).outputs)) key = 'outputs';
      fold.isComplete = /^interaction\.completed?$/.test(type);
      update(answer, interaction);
      update(answer, defined({ status, error, usage }));
      const { step = event.content } = event;
      if (isFields(step)) {
        if (!isFull) update(itemFor(items, { ...step, index }), step);
        return hasOnlyType(step) ? 0 : JSON.stringify(step).length;
      }
      if (!isFields(delta)) return 0;
      return addToStep(isFull ? emptyFields() : itemOf(delta, index), delta);
    },
    result() {
      const given = listOf(answer[key]);
      const steps = withoutIndex(items).map(withParsedArguments);
      return { ...answer, [key]: given.length >= steps.length ? updated(steps, given) : steps };
    },
  };
  return fold;
}

/** Adds a delta to a step, or to a content of the first version, which has the type of its deltas. */
function addToStep(step: Fields, given: Fields): number {
  const { type, ...delta } = given;
  const { content, arguments: json, annotations } = delta;
  if (hasOnlyType(given)) return 0;
  if (type === 'arguments_delta') return addDelta(step, { arguments: json });
  if (type === 'thought_summary') return addDelta(step, { summary: [content] });
  if (type === 'text_annotation_delta') return addDelta(step, { content: [{ type: 'text', text: '', annotations }] });
  if (isContent(given) && step.type !== type) return addDelta(step, { content: [given] });
  if (type === 'text') return addDelta(step, delta);
  update(step, delta);
  return JSON.stringify(delta).length;
}

function withParsedArguments(item: unknown): unknown {
  const { arguments: json } = fieldsOf(item);
  return typeof json === 'string' ? withField(item, 'arguments', parsedJson(json)) : item;
}
