import { types } from 'node:util';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { MASK, Redaction, type RedactionParts, type Replacement } from './redaction.ts';
import { PathPlace } from './redaction-paths.ts';
import { SecretNames } from './secret-names.ts';

/** What `redact` is told. Everything is optional. */
export interface RedactOptions {
  /**
   * Values to hide, by where they are: `inputs.user.email`, `outputs.**.token`, `events.*.kwargs.x`, `**.email`. A path begins
   * with a field (`inputs`, `outputs`, `events`, `metadata`, `error`, `tags`, `name`, `attachments`); `*` is any key or item,
   * `[*]` any item, `**` any number of levels, `["a.b"]` a key with a dot.
   */
  paths?: readonly string[];
  /**
   * Texts to hide, wherever they are: in payloads and their keys, in events, errors and stacks, in metadata, tags, the names
   * of runs and of attachments. Each should take a time in proportion to the text; `secretPatterns` do.
   */
  patterns?: readonly RegExp[];
  /**
   * What stands for what was found: a text, or a function of the found text and its path. Where that throws or answers with
   * anything but text, the whole field is hidden.
   *
   * @default '[Redacted]'
   */
  replace?: string | ((found: string, path: string) => string);
  /** False shows values under names such as `authorization`; a list adds names. @default true */
  keys?: boolean | readonly string[];
}

/**
 * Compiles what is to be hidden, for the option `redact` of `configure`, `createExporter` and `recordRuns`. It takes effect
 * once, before a run is queued. Options that do not hold are told in one line, and then every payload is hidden: what they
 * were meant to hide is not known.
 */
export function redact(options: RedactOptions = {}): Redaction {
  try {
    return new Redaction(partsOf(options));
  } catch (thrown) {
    diagnostics.error(`redact: ${messageOf(thrown)}; every payload is hidden`);
    return hideAll;
  }
}

/** Hides every payload. */
export const hideAll: Redaction = new Redaction(undefined);

const KNOWN: readonly string[] = ['paths', 'patterns', 'replace', 'keys'] satisfies (keyof RedactOptions)[];

function partsOf(options: unknown): RedactionParts {
  if (typeof options !== 'object' || options === null) throw new TypeError('expected the options to be an object');
  const given: Record<string, unknown> = { __proto__: null, ...options };
  for (const key of Object.keys(given)) if (!KNOWN.includes(key)) throw new TypeError(`unknown option \`${key}\``);
  const { paths = [], patterns = [], replace = MASK, keys = true } = given;
  if (!isListOf(paths, (path) => typeof path === 'string'))
    throw new TypeError('expected `paths` to be a list of text');
  if (!isListOf(patterns, types.isRegExp))
    throw new TypeError('expected `patterns` to be a list of regular expressions');
  if (typeof replace !== 'string' && typeof replace !== 'function') {
    throw new TypeError('expected `replace` to be text or a function');
  }
  const names = namesOf(keys);
  return {
    names: names && new SecretNames(names, true),
    namesBesideText: names && new SecretNames(names, false),
    paths: PathPlace.root(paths as string[]),
    patterns: patterns as RegExp[],
    replacement: replace as Replacement,
  };
}

function namesOf(keys: unknown): readonly string[] | undefined {
  if (keys === false) return undefined;
  if (keys === true) return [];
  const isName = (key: unknown): boolean => typeof key === 'string' && /[\p{L}\p{N}]/u.test(key);
  if (!isListOf(keys, isName)) throw new TypeError('expected `keys` to be true, false or a list of names');
  return keys as string[];
}

function isListOf(value: unknown, holds: (item: unknown) => boolean): value is readonly unknown[] {
  return Array.isArray(value) && value.every(holds);
}
