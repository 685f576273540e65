import { parseArgs } from 'node:util';
import type { Command } from './child.ts';
import { quoted } from './terminal-text.ts';

/** The words that a command takes. */
export interface WordRules {
  /** Options that have a value; they may be given more than once. */
  readonly texts?: readonly string[];
  /** Options that have none; `help` is always one. */
  readonly flags?: readonly string[];
  /** What is said of an option without its value, where there is more to say than that. */
  readonly missing?: Readonly<Record<string, string>>;
  /** What is said of a word that is no option; without it they are taken. */
  readonly stray?: (word: string) => string;
}

/** The words that were given. */
export interface Words {
  /** Each option that was given, with its values in order. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly flags: ReadonlySet<string>;
  readonly positionals: readonly string[];
}

/** Reads the words after a command, or says what is wrong with the first that does not hold. */
export function readWords(argv: readonly string[], rules: WordRules): Words | { readonly wrong: string } {
  const { texts = [], missing = {}, stray } = rules;
  const flagNames = [...(rules.flags ?? []), 'help'];
  const options = Object.fromEntries([
    ...texts.map((name) => [name, { type: 'string' as const }]),
    ...flagNames.map((name) => [name, { type: 'boolean' as const, ...(name === 'help' ? { short: 'h' } : {}) }]),
  ]);
  // Not strict: that would answer with errors of several lines, in words of its own.
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true });
  const values = new Map<string, string[]>();
  const flags = new Set<string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (stray !== undefined) return { wrong: stray(quoted(token.value)) };
      positionals.push(token.value);
    } else if (token.kind === 'option') {
      const { name, value } = token;
      if (flagNames.includes(name)) {
        if (value !== undefined) return { wrong: `expected no value for --${name}` };
        flags.add(name);
      } else if (!texts.includes(name)) return { wrong: `unknown option ${quoted(token.rawName)}` };
      // The next option is no value: `--ref --wait` would deploy a branch of that name. `--ref=--wait` is one.
      else if (!value || (!token.inlineValue && value.startsWith('--')))
        return { wrong: missing[name] ?? `expected a value for --${name}` };
      else values.set(name, [...(values.get(name) ?? []), value]);
    }
  }
  return { values, flags, positionals };
}

/** The last value of an option; undefined where it was not given. */
export function lastOf(words: Words, name: string): string | undefined {
  return words.values.get(name)?.at(-1);
}

/**
 * The words before the first `--`, and the command behind it, to which all that follows belongs, flags and further `--` included;
 * 'none' when nothing does.
 */
export function splitCommand(argv: readonly string[]): {
  readonly words: readonly string[];
  readonly command: Command | 'none' | undefined;
} {
  const end = argv.indexOf('--');
  if (end === -1) return { words: argv, command: undefined };
  const [program, ...args] = argv.slice(end + 1);
  return { words: argv.slice(0, end), command: program ? [program, ...args] : 'none' };
}

/** An http or https address. */
export function webAddress(text: string | undefined): URL | undefined {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}
