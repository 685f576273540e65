import * as z from 'zod/v4';
import { isFields, mapped, parsedJson, textOf } from '../../payload/fields.ts';
import type { RunSource } from '../stores.ts';
import type { Answer } from './answer.ts';

/** Opens the source of runs, reads from it and closes it. */
export type Read = <Result>(read: (source: RunSource) => Promise<Result>) => Promise<Result>;

/** A tool that a coding agent can call. */
export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly input: Input;
  /** Throws an error with one clear sentence, which becomes the result of the call. */
  use(given: z.output<Input>, read: Read, signal: AbortSignal): Promise<Answer>;
}

/** Returns a tool with the type of its parameters checked, so that tools with different parameters fit in a list. */
export function tool<Input extends z.ZodObject>(definition: Tool<Input>): Tool {
  return definition as unknown as Tool;
}

/**
 * Returns a schema that takes arguments as models send them: null and blank text are absent, and text for a number, a
 * boolean, an object or a list is parsed as JSON. An unknown key stays an error.
 */
export function acceptingTexts<Input extends z.ZodObject>(input: Input): z.ZodPreprocess<Input> {
  const expected = z.toJSONSchema(input, { io: 'input' }) as Expected;
  return z.preprocess((given) => argumentOf(given, expected), input);
}

/** The part of a JSON schema that the meaning of an argument depends on. */
type Expected = { type?: string; properties?: Readonly<Record<string, Expected>>; items?: Expected };

function argumentOf(given: unknown, { type = 'string', properties, items }: Expected): unknown {
  const isJson = typeof given === 'string' && type !== 'string';
  // Models also send Python's `True` and `False`.
  const value = isJson ? parsedJson(type === 'boolean' ? given.toLowerCase() : given) : given;
  if (items !== undefined) return mapped(value, (item) => argumentOf(item, items));
  if (properties === undefined || !isFields(value)) return value;
  const entries = Object.entries(value).map(([key, one]) => [key, argumentOf(one, properties[key] ?? {})] as const);
  const isAbsent = (one: unknown): boolean => one === null || textOf(one)?.trim() === '';
  return Object.fromEntries(entries.filter(([key, one]) => !(isAbsent(one) && Object.hasOwn(properties, key))));
}

const FILTER =
  "filter in runspan's filter language, for example 'status:error user:ada latency>2s since:1h refund'; the conditions apply to the root run, any(status:error type:llm) to any run, search words to any run";

export const SELECTION: { project: z.ZodOptional<z.ZodString>; filter: z.ZodDefault<z.ZodString> } = {
  project: z.string().optional().describe('name of a project'),
  filter: z.string().max(1_000).default('').describe(FILTER),
};

export const OFFSET: z.ZodDefault<z.ZodNumber> = z.number().int().min(0).default(0);
