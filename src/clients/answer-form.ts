import { isObject } from '../base/options.ts';

/** What the body of an answer has to be. What is in it is not checked. */
export type AnswerForm = 'object' | 'list' | 'number' | 'any';

/** Why the body of an answer is not what it has to be; undefined where it is. */
export function problemOf(data: unknown, form: AnswerForm): string | undefined {
  if (form === 'any') return undefined;
  if (form === 'list') return Array.isArray(data) ? undefined : 'is no list';
  if (form === 'number') return typeof data === 'number' ? undefined : 'is no number';
  return isObject(data) ? undefined : 'is no object';
}
