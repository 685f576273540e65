import { idTextOf } from '../../payload/fields.ts';
import { type Attributes, json, jsonAs, jsonTexts, text, texts } from './values.ts';
import { type Kind, type Row, type Vocabulary, WHOLE } from './vocabulary.ts';

export const inputValue: Row = ['input.value', WHOLE, jsonAs('input.mime_type'), 'repeats'];
export const outputValue: Row = ['output.value', WHOLE, jsonAs('output.mime_type'), 'repeats'];

/** Reads `tag.tags`. OpenInference's packages set it to JSON text. */
export const tagList: Row = ['tag.tags', 'tags', jsonTexts];

/** Mapping table for attributes that any span may have. Only protocol attributes have a lower precedence. */
export const generalAttributes: Vocabulary = {
  name: 'general',
  namespaces: ['input', 'output', 'session', 'user', 'enduser', 'tag', 'gen_ai'],
  kindOf,
  inputs: [inputValue],
  outputs: [outputValue],
  metadata: [
    ['session.id', 'thread_id', idTextOf, 'kept'],
    ['user.id', 'user_id', idTextOf],
    ['enduser.id', 'user_id', idTextOf],
    ['enduser.pseudo.id', 'user_id', idTextOf],
  ],
  tags: [tagList],
  ignored: ['input.mime_type', 'output.mime_type'],
};

/** A span of an unknown type that names a model is probably a model call, and one with the id of a tool call a tool. */
function kindOf(attributes: Attributes): Kind {
  if (text(attributes['gen_ai.request.model']) !== undefined) return { runType: 'llm' };
  return attributes['gen_ai.tool.call.id'] === undefined ? {} : { runType: 'tool', nameFrom: 'gen_ai.tool.name' };
}

const PROJECT = 'runspan.project';

/** Mapping table for runspan's own attributes, for fields that no convention defines. They precede all others. */
export const runspanAttributes: Vocabulary = {
  name: 'runspan',
  namespaces: ['runspan'],
  kindOf: (attributes) => ({ runType: text(attributes['runspan.run_type']), nameFrom: 'runspan.name' }),
  inputs: [['runspan.inputs', WHOLE, json]],
  outputs: [['runspan.outputs', WHOLE, json]],
  tags: [['runspan.tags', 'tags', texts]],
  project: PROJECT,
  ignored: ['runspan.run_type', PROJECT],
};
