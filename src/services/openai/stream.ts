import {
  defined,
  emptyFields,
  type Fields,
  fieldsOf,
  firstText,
  isFields,
  listOf,
  numberOf,
  textOf,
  without,
  withValues,
} from '../../payload/fields.ts';
import type { Fold } from '../answer.ts';
import { addDelta, itemFor, update, updated, withoutIndex } from '../deltas.ts';
import { withField } from '../media.ts';

/**
 * Fields of a choice that chunks extend, besides the message. Chunks replace all other fields. For example, each chunk
 * contains Azure's complete content filter result.
 */
const EXTENDED: ReadonlySet<string> = new Set(['text', 'logprobs']);

export function choicesFold(): Fold {
  const answer = emptyFields();
  const choices: unknown[] = [];
  let last = 0;
  const addChoice = ({ index, delta, ...others }: Fields, isFull: boolean): number => {
    last = numberOf(index) ?? last;
    const known = itemFor(choices, { index: last });
    const target = isFull ? emptyFields() : known;
    let characters = isFields(delta) ? addDelta(target, { message: delta }) : 0;
    for (const [key, value] of Object.entries(others)) {
      if (EXTENDED.has(key)) characters += addDelta(target, { [key]: value });
      else update(known, { [key]: value });
    }
    return characters;
  };
  return {
    add(chunk, isFull) {
      // `obfuscation` is random padding that hides the size of a chunk.
      const { choices: added, obfuscation: _, ...others } = fieldsOf(chunk);
      update(answer, others);
      return listOf(added).reduce<number>((sum, choice) => sum + addChoice(fieldsOf(choice), isFull), 0);
    },
    result() {
      const object = answer.object === 'chat.completion.chunk' ? 'chat.completion' : answer.object;
      return { ...answer, object, choices: choices.toSorted(byIndex).map(withSortedToolCalls) };
    },
  };
}

function byIndex(a: unknown, b: unknown): number {
  return Number(fieldsOf(a).index) - Number(fieldsOf(b).index);
}

function withSortedToolCalls(choice: unknown): unknown {
  const { message } = fieldsOf(choice);
  const { tool_calls: calls } = fieldsOf(message);
  if (!Array.isArray(calls)) return choice;
  return withField(choice, 'message', withField(message, 'tool_calls', withoutIndex(calls.toSorted(byIndex))));
}

/** Maps each kind of event with text to the field that it extends, and to the list of the part that has the field. */
const TEXTS: ReadonlyMap<unknown, readonly [field: string, list?: string]> = new Map([
  ['response.output_text', ['text', 'content']],
  ['response.refusal', ['refusal', 'content']],
  ['response.reasoning_text', ['text', 'content']],
  ['response.reasoning_summary_text', ['text', 'summary']],
  ['response.function_call_arguments', ['arguments']],
  ['response.mcp_call_arguments', ['arguments']],
  ['response.custom_tool_call_input', ['input']],
  ['response.code_interpreter_call_code', ['code']],
]);

/** Events with the complete response. Events before them contain its first state, without output. */
const COMPLETE = /^response\.(completed|failed|incomplete)$/;

/** Maximum index in a list. A larger index would create a huge sparse list. */
const INDEX_MAX = 10_000;

/** Combines the events of a response. Items and parts are built from deltas, and updated by their complete states. */
export function responseFold(): Fold {
  const response: Fields = Object.assign(emptyFields(), { object: 'response' });
  let items: { index: unknown; item: Fields }[] = [];

  /**
   * Finds the item of an event by its id, else by its index. Known only from reports: GitHub Copilot gives an item another
   * id in each event, and gateways give several items one index (https://github.com/BerriAI/litellm/pull/30072, 36375).
   */
  const itemOf = ({ type, output_index: index, item, item_id }: Fields): Fields => {
    const id = firstText(fieldsOf(item).id, item_id);
    const isNear = (one: { index: unknown }): boolean => typeof index !== 'number' || one.index === index;
    const isStart = type === 'response.output_item.added' && id !== undefined;
    const sameId = id && items.findLast((one) => one.item.id === id);
    const known = sameId || (isStart ? undefined : items.findLast(isNear));
    if (known) return known.item;
    const added = { index, item: Object.assign(emptyFields(), id && { id }) };
    items.push(added);
    return added.item;
  };
  const partOf = (event: Fields, key: string): Fields => {
    const owner = itemOf(event);
    owner[key] = Array.isArray(owner[key]) ? owner[key] : [];
    const parts = owner[key] as unknown[];
    const index = numberOf(key === 'summary' ? event.summary_index : event.content_index) ?? -1;
    const isPlace = Number.isInteger(index) && index >= 0 && index < INDEX_MAX;
    const at = isPlace ? index : Math.max(0, parts.length - 1);
    if (!isFields(parts[at])) parts[at] = emptyFields();
    return parts[at] as Fields;
  };
  const add = (event: Fields, isFull: boolean): number => {
    const { response: summary, item, part, delta } = event;
    const type = textOf(event.type) ?? '';
    if (isFields(summary)) {
      const { output, ...others } = summary;
      const isComplete = COMPLETE.test(type);
      if (isComplete) for (const key of Object.keys(response)) if (response[key] === null) delete response[key];
      update(response, others);
      const given = listOf(output);
      // Known only from reports: ChatGPT's backend for Codex sends the complete response without output
      // (https://github.com/open-webui/open-webui/pull/27800).
      if (isComplete && given.length >= items.length) {
        const received = items.map((one) => one.item);
        items = listOf(updated(received, given)).map((one, index) => ({ index, item: fieldsOf(one) }));
      }
    } else if (type === 'error') update(response, { error: event });
    else if (isFields(item)) update(itemOf(event), item);
    else if (isFields(part)) update(partOf(event, type.includes('summary') ? 'summary' : 'content'), part);
    const [field, list] = TEXTS.get(type.replace(/\.(delta|done)$/, '')) ?? [];
    if (field === undefined) return 0;
    const target = isFull ? {} : list === undefined ? itemOf(event) : partOf(event, list);
    if (type.endsWith('.done')) update(target, defined({ [field]: event[field], name: event.name }));
    return addDelta(target, { [field]: textOf(delta) });
  };
  return {
    add: (event, isFull) => add(fieldsOf(event), isFull),
    result: () => ({ ...response, output: items.map(({ item }) => withoutHoles(item)) }),
  };
}

/** Removes the empty places in the lists of an item. An event that is lost leaves one. */
function withoutHoles(item: Fields): Fields {
  return withValues(item, (value) => (Array.isArray(value) ? value.flat(0) : value));
}

/** Event fields that are not part of the response. */
const EVENT_FIELDS: ReadonlySet<string> = new Set(['type', 'b64_json', 'created_at', 'partial_image_index']);

/** Collects the complete images in a stream and counts the partial images. */
export function imagesFold(): Fold {
  const data: Fields[] = [];
  let partialImages = 0;
  let answer: Fields = {};
  return {
    add(event) {
      const fields = fieldsOf(event);
      if (textOf(fields.type)?.endsWith('.completed')) {
        data.push({ b64_json: fields.b64_json });
        answer = { created: fields.created_at, ...without(fields, EVENT_FIELDS) };
      } else {
        partialImages++;
      }
      return 0;
    },
    result: () => ({ ...answer, data, ...(partialImages > 0 && { partial_images: partialImages }) }),
  };
}
