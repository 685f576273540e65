import { type Check, type Checks, checkedOptions, isObject } from '../../config/checker.ts';
import { type Fields, fieldsOf } from '../../payload/fields.ts';
import type { RunType } from '../../run/record.ts';
import { counts, json, jsonFields, jsonTexts, number, type Read, text } from './values.ts';
import { type Row, type Vocabulary, WHOLE } from './vocabulary.ts';

/**
 * Maps span attributes to fields of runs. Each record maps the name of an attribute to a key, and earlier attributes take
 * precedence. A key with a dot is nested. With the key `*`, the value of the attribute stands for all inputs or outputs,
 * or is an object whose keys are added. JSON text is parsed.
 *
 * An attribute name that ends with `.*` stands for all attributes that begin with the name before the star. In
 * `acme.*.input`, the star stands for one word.
 */
export interface SpanVocabulary {
  /** Attribute whose value selects the run type. */
  readonly attribute?: string;
  /** Run types by value of `attribute`. With `shouldExport: 'llm'`, spans with these values become runs. */
  readonly runTypes?: Readonly<Record<string, RunType>>;
  /** Attribute that contains the name of the run. By default, the run has the name of its span. */
  readonly nameFrom?: string;
  /** Inputs by attribute. All inputs of a run come from one vocabulary. */
  readonly inputs?: Readonly<Record<string, string>>;
  /** Outputs by attribute. All outputs of a run come from one vocabulary. */
  readonly outputs?: Readonly<Record<string, string>>;
  /**
   * Token counts and costs in USD by attribute: `input_tokens`, `output_tokens`, `total_tokens`, `input_cost`,
   * `output_cost`, `total_cost`, and details such as `input_token_details.cache_read`. Runs of the type `chain` have
   * none, because their counts would repeat those of the model calls below.
   */
  readonly usage?: Readonly<Record<string, string>>;
  /** Parameters of the model call by attribute, for example `model` and `temperature`. */
  readonly parameters?: Readonly<Record<string, string>>;
  /**
   * Metadata by attribute. `thread_id` and `user_id` are the conversation and the user, `ls_model_name` and `ls_provider`
   * the model. Attributes that no vocabulary uses become metadata under their own names.
   */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Attributes that contain tags: one tag, a list of tags, or such a list as JSON text. */
  readonly tags?: readonly string[];
}

/** Maximum number of vocabularies per option. The tables of a span are in a bit mask of 31 bits. */
const VOCABULARIES_MAX = 10;

export const vocabulariesCheck: Check = [
  `a list of at most ${VOCABULARIES_MAX} vocabularies`,
  (value) => Array.isArray(value) && value.length <= VOCABULARIES_MAX,
];

const isText = (value: unknown): boolean => text(value) !== undefined;
const NAME: Check = ['the name of an attribute', isText];
/** Matches a name without a star, with `.*` at the end, or with a star as the second word. */
const PATTERN = /^(?:[^*]+(?:\.\*)?|[^.*]+\.\*\.[^*]+)$/;

const KEYS: Check = [
  "an object that maps attributes to keys, for example { 'acme.question': 'question' }",
  (value) => isObject(value) && Object.entries(value).every(([name, key]) => PATTERN.test(name) && isText(key)),
];

const USAGE_KEY = /^(?:\*|(?:input|output|total)_(?:tokens|cost)|(?:input|output)_(?:token|cost)_details\.\w+)$/;

export const vocabularyChecks: Checks<SpanVocabulary> = {
  attribute: NAME,
  runTypes: [
    "an object that maps values to run types, for example { model: 'llm' }",
    (value) => isObject(value) && Object.values(value).every(isText),
  ],
  nameFrom: NAME,
  inputs: KEYS,
  outputs: KEYS,
  usage: [
    "an object that maps attributes to token counts or costs, for example { 'acme.tokens': 'input_tokens' }",
    (value) => KEYS[1](value) && Object.values(value as object).every((key) => USAGE_KEY.test(key)),
  ],
  parameters: KEYS,
  metadata: KEYS,
  tags: ['a list of attributes', (value) => Array.isArray(value) && value.every(isText)],
};

/** Returns copies of the vocabularies. Throws if one of them is invalid. */
export function checkedVocabularies(list: readonly unknown[] = []): SpanVocabulary[] {
  return list.map((one, at) => checkedOptions(`\`vocabularies[${at}]\``, one, vocabularyChecks));
}

export function vocabularyOf(name: string, given: SpanVocabulary): Vocabulary {
  const { attribute = '', runTypes = {}, nameFrom, inputs, outputs, usage, parameters, metadata, tags = [] } = given;
  const types = new Map(Object.entries(runTypes));
  const rows = {
    inputs: rowsOf(inputs, json),
    outputs: rowsOf(outputs, json),
    usage: rowsOf(usage, number, counts, counts),
    parameters: rowsOf(parameters, json, jsonFields),
    metadata: rowsOf(metadata, json, jsonFields),
    tags: tags.map((tag): Row => [tag, 'tags', jsonTexts]),
  };
  const names = [attribute, nameFrom ?? '', ...Object.values(rows).flatMap((some) => some.map(([from]) => from))];
  return {
    name,
    namespaces: [...new Set(names.map((from) => from.split('.', 1)[0] as string))],
    kindOf: (attributes) => ({ runType: types.get(String(attributes[attribute])), nameFrom }),
    ...rows,
  };
}

/**
 * Returns the rows of a group. `ofObject` reads an object whose keys are added to the group. Undefined for payloads, which
 * may have any type. `below` reads the attributes below a name.
 */
function rowsOf(keys: Readonly<Record<string, string>> = {}, read: Read, ofObject?: Read, below: Read = eachJson) {
  return Object.entries(keys).map(([name, key]): Row => {
    if (name.endsWith('.*')) return [name.slice(0, -2), key, below, 'below'];
    return key === WHOLE && ofObject !== undefined ? [name, key, ofObject, 'merged'] : [name, key, read];
  });
}

function eachJson(value: unknown): Fields {
  return Object.fromEntries(Object.entries(fieldsOf(value)).map(([key, one]) => [key, json(one)]));
}
