import { json, text, texts } from './values.ts';
import { type Vocabulary, WHOLE } from './vocabulary.ts';

const PROJECT = 'runspan.project';

/** Our own attributes, for what no convention has a word for. They go before all others. */
export const runspanAttributes: Vocabulary = {
  name: 'runspan',
  roots: ['runspan'],
  kindOf: (attributes) => ({ runType: text(attributes['runspan.run_type']), nameFrom: 'runspan.name' }),
  inputs: [['runspan.inputs', WHOLE, json]],
  outputs: [['runspan.outputs', WHOLE, json]],
  tags: [['runspan.tags', 'tags', texts]],
  project: PROJECT,
  spent: ['runspan.run_type', PROJECT],
};
