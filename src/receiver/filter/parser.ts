import { nearWord } from '../../base/near.ts';
import type { TextField } from '../domain/query/query.ts';
import { TEXT_FIELDS } from '../domain/query/query-keys.ts';
import { RUN_STATUSES, storable } from '../domain/run-view.ts';
import type { AmountField, Bound, Comparison, FilterNode, TextPattern } from './filter.ts';
import { AMOUNTS, NUMBER, parseNumber, TIME, toIsoTime } from './values.ts';

const LENGTH_MAX = 4_000;
/** Maximum number of values in a filter. A condition without a value counts as one value. */
const VALUES_MAX = 50;
const DEPTH_MAX = 10;

/** Values of `status`. In a list of traces, they are outcomes. Only traces have `failed_below`. */
export const STATUSES: readonly string[] = ['error', 'failed_below', ...RUN_STATUSES.filter((one) => one !== 'error')];

/** A condition, search words or a time at the top level of a filter. */
export interface FilterTerm {
  /** Text of the term, with a closing quote if the quote is missing. */
  readonly text: string;
  readonly kind: 'condition' | 'words' | 'since' | 'before';
  /** The search words, or the time as an ISO 8601 timestamp. Empty for a condition. */
  readonly value: string;
  /** The parsed condition. Present if `kind` is `condition` and the condition is valid. */
  readonly node?: FilterNode;
  /** Why the term is invalid. */
  readonly problem?: string;
}

/**
 * Parses a filter text. All of the returned conditions must match. Text that is not a condition becomes search words.
 * Never throws. Relative times are relative to `nowMs`.
 */
export function parseFilter(text: string, nowMs: number): FilterTerm[] {
  if (text.length <= LENGTH_MAX) return new FilterParser(text, nowMs).terms();
  return [{ text, kind: 'condition', value: '', problem: `a filter has at most ${LENGTH_MAX} characters` }];
}

export function problemIn(terms: readonly FilterTerm[]): string | undefined {
  return terms.find(({ problem }) => problem !== undefined)?.problem;
}

/**
 * Returns the text of a filter without its invalid terms, and with absolute times instead of relative and local times,
 * so that the filter selects the same runs later and elsewhere.
 */
export function absoluteText(terms: readonly FilterTerm[]): string {
  const isTime = ({ kind }: FilterTerm) => kind === 'since' || kind === 'before';
  const valid = terms.filter(({ problem }) => problem === undefined);
  return valid.map((term) => (isTime(term) ? `${term.kind}:${term.value}` : term.text)).join(' ');
}

/**
 * Returns a filter of traces with the outcome `failed_below` instead of `error`, for a list without matches. Returns undefined
 * if no term selects the outcome `error`.
 */
export function failedBelowInstead(terms: readonly FilterTerm[]): string | undefined {
  const isOfErrors = ({ node }: FilterTerm): boolean =>
    node !== undefined &&
    'field' in node &&
    node.field === 'status' &&
    !!node.values?.some(({ text }) => text === 'error');
  if (!terms.some(isOfErrors)) return undefined;
  return terms.map((term) => (isOfErrors(term) ? 'status:failed_below' : term.text)).join(' ');
}

export function condition(key: string, ...values: readonly string[]): string {
  return `${key}:${values.map(filterValue).join(',')}`;
}

/** Returns a filter for the words of a text, none of which is then a condition. Words in double quotes stay adjacent. */
export function searchWords(text: string): string {
  // Pieces with an odd index were in quotes.
  const pieces = text.split('"').flatMap((piece, at) => (at % 2 === 1 ? [piece] : piece.split(/\s+/)));
  const words = pieces.filter((piece) => piece.trim() !== '');
  return words.map((word) => `"${word.replaceAll('\\', ' ')}"`).join(' ');
}

/** Puts a value in quotes if the filter syntax requires it. */
export function filterValue(text: string): string {
  return /^[^\s"\\=:<>,*()]+$/.test(text) ? text : `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** Search words or a time, which are valid only at the top level. */
type TopLevel = Pick<FilterTerm, 'value'> & { readonly kind: Exclude<FilterTerm['kind'], 'condition'> };

const SPACES = /(?:\s|AND(?=[\s()]|$))+/y;
const OR = /\s+OR(?=[\s()]|$)/y;
const MISSING = 'OR and NOT expect a condition after them, and OR also before it';
const STRAY_OR = /OR(?=[\s()]|$)/y;
const NOT = /NOT(?=[\s(])\s*|-(?=[a-zA-Z("])/y;
const ANY_RUN = /any\(/y;
const OPEN = /\(/y;
const CLOSE = /\)/y;
const COMMA = /,/y;
const STAR = /\*/y;
const STAR_BEFORE_QUOTE = /\*(?=")/y;
const QUOTED = /"((?:[^"\\]|\\.)*)("?)/sy;
const MAP = /(meta|feedback)\./y;
const MAP_KEY = /[^\s=:"()<>,]+/y;
const MAP_OPERATOR = /[<>]=?|[:=]/y;
const FIELD = /([a-z_]+)([:=]|!=|[<>]=?)/y;
/** The value of an unknown key, with quotes. */
const MISTYPED = /(?:"[^"]*"?|[^\s")])*/y;
const KEYS: readonly string[] = [...TEXT_FIELDS, ...Object.keys(AMOUNTS), 'since', 'before', 'is'];
const BOUNDARY = /(?=[\s)]|$)/y;

/** Recursive-descent parser. `OR` binds more tightly than the space between two conditions. */
class FilterParser {
  readonly #text: string;
  readonly #nowMs: number;
  #at = 0;
  /** Number of open parentheses. */
  #groups = 0;
  #depth = 0;
  #values = 0;
  #problem: string | undefined;
  #isQuoteOpen = false;
  #isInAnyRun = false;

  constructor(text: string, nowMs: number) {
    this.#text = storable(text);
    this.#nowMs = nowMs;
  }

  terms(): FilterTerm[] {
    const terms: FilterTerm[] = [];
    for (;;) {
      this.#eat(SPACES);
      if (this.#at >= this.#text.length) return terms;
      terms.push(this.#term());
    }
  }

  #term(): FilterTerm {
    const start = this.#at;
    this.#problem = undefined;
    this.#isQuoteOpen = false;
    const item = this.#alternatives();
    const text = this.#text.slice(start, this.#at) + (this.#isQuoteOpen ? '"' : '');
    if (this.#problem !== undefined) return { text, kind: 'condition', value: '', problem: this.#problem };
    return isTopLevel(item) ? { text, ...item } : { text, kind: 'condition', value: '', node: item };
  }

  #alternatives(): FilterNode | TopLevel {
    const first = this.#negatable();
    if (!this.#eat(OR)) return first;
    const some = [this.#nested(first)];
    do {
      this.#eat(SPACES);
      some.push(this.#nested(this.#negatable()));
    } while (this.#eat(OR));
    return { some };
  }

  #negatable(): FilterNode | TopLevel {
    if (this.#eat(NOT)) return this.#deeper(() => ({ not: this.#nested(this.#negatable()) }));
    if (this.#eat(ANY_RUN)) return this.#anyRun();
    if (this.#eat(OPEN)) return this.#group();
    const isEnd = this.#at >= this.#text.length || (this.#groups > 0 && this.#text[this.#at] === ')');
    if (isEnd) return this.#fail(MISSING);
    if (!this.#eat(STRAY_OR)) return this.#condition();
    this.#eat(SPACES);
    this.#fail(MISSING);
    return this.#negatable();
  }

  #anyRun(): FilterNode {
    // The runs of a trace are the same on each level, and SQL queries would take too long.
    if (this.#isInAnyRun) this.#fail('any() cannot contain any()');
    this.#isInAnyRun = true;
    const anyRun = this.#group();
    this.#isInAnyRun = false;
    return { anyRun };
  }

  #group(): FilterNode {
    return this.#deeper(() => {
      const all: FilterNode[] = [];
      this.#groups += 1;
      for (this.#eat(SPACES); !this.#eat(CLOSE); this.#eat(SPACES)) {
        if (this.#at >= this.#text.length) {
          this.#fail('a parenthesis is not closed');
          break;
        }
        all.push(this.#nested(this.#alternatives()));
      }
      this.#groups -= 1;
      if (all.length === 0) this.#fail('parentheses expect a condition');
      return { all };
    });
  }

  #deeper(parse: () => FilterNode): FilterNode {
    if (this.#depth >= DEPTH_MAX) {
      // Stops parsing, because deeper recursion could exceed the stack.
      this.#at = this.#text.length;
      return this.#fail(`parentheses and negations are nested at most ${DEPTH_MAX} levels deep`);
    }
    this.#depth += 1;
    const node = parse();
    this.#depth -= 1;
    return node;
  }

  #nested(item: FilterNode | TopLevel): FilterNode {
    if (!isTopLevel(item)) return item;
    const what = item.kind === 'words' ? 'search words' : 'since: and before:';
    return this.#fail(`${what} cannot be used with OR, NOT, any() or parentheses`);
  }

  #condition(): FilterNode | TopLevel {
    const start = this.#at;
    for (const parse of [() => this.#mapCondition(), () => this.#fieldCondition()]) {
      const condition = parse();
      if (condition !== undefined) return condition;
      this.#at = start;
      this.#isQuoteOpen = false;
    }
    if (this.#quoted() === undefined) this.#bare();
    return { kind: 'words', value: this.#text.slice(start, this.#at) + (this.#isQuoteOpen ? '"' : '') };
  }

  /** Parses a condition on metadata or feedback. Returns undefined if there is none. */
  #mapCondition(): FilterNode | undefined {
    const field = this.#eat(MAP)?.[1] as 'meta' | 'feedback' | undefined;
    const key = field && (this.#quoted() ?? this.#eat(MAP_KEY)?.[0]);
    if (field === undefined || key === undefined) return undefined;
    const operator = this.#eat(MAP_OPERATOR)?.[0];
    if (operator === undefined) return this.#eat(BOUNDARY) && this.#counted({ field, key });
    const isEqual = operator === ':' || operator === '=';
    const label = `${field}.${key}${operator}`;
    if (field === 'feedback' && (!isEqual || this.#peekBare().includes('..'))) {
      return this.#counted({ field, key, bounds: this.#bounds(label, isEqual ? ':' : operator, NUMBER, parseNumber) });
    }
    if (!isEqual) return this.#fail(`meta.${key} expects = or :`);
    return this.#counted({ field, key, values: this.#patterns(label) });
  }

  /** Parses `key:value`, `key=value` or `key>value`. Returns undefined if the key is near no known one. */
  #fieldCondition(): FilterNode | TopLevel | undefined {
    const [label, key = '', operator = ''] = this.#eat(FIELD) ?? [];
    if (label === undefined) return undefined;
    const isEqual = operator === ':' || operator === '=';
    // `note` is not among the keys that a mistyping may mean, because `node:` begins the names of Node's modules.
    if (key === 'note' && isEqual) return this.#counted({ field: 'feedback', key, values: this.#patterns(label) });
    const meant = nearWord(key, KEYS);
    if (meant !== undefined) {
      const [value = ''] = this.#eat(MISTYPED) ?? [];
      const shown = value.length > 80 ? `${value.slice(0, 80)}…` : value;
      return this.#fail(`unknown key "${key}": did you mean ${meant}${operator}${shown}?`);
    }
    if (Object.hasOwn(AMOUNTS, key) && operator !== '!=') {
      const field = key as AmountField;
      return this.#counted({ field, bounds: this.#bounds(label, isEqual ? ':' : operator, ...AMOUNTS[field]) });
    }
    if (!isEqual && !KEYS.includes(key)) return undefined;
    if (!isEqual) return this.#fail(`${label} is no comparison of ${key}; for "not", use -${key}:`);
    if (key === 'since' || key === 'before') {
      const value = toIsoTime(this.#quoted() ?? this.#bare(), this.#nowMs);
      if (value === undefined) return this.#fail(`${label} expects ${TIME}`);
      return { kind: key, value };
    }
    if (key === 'is') {
      const is = (['root', 'internal'] as const).find((one) => one === this.#peekBare());
      this.#bare();
      return is === undefined ? this.#fail('is: expects root or internal') : this.#counted({ field: is });
    }
    const field = TEXT_FIELDS.find((one) => one === key);
    if (field === undefined) return undefined;
    return this.#counted({ field, values: this.#patterns(label).map((pattern) => this.#checked(field, pattern)) });
  }

  #counted(comparison: Comparison): Comparison {
    this.#values += comparison.values?.length ?? 1;
    if (this.#values > VALUES_MAX) this.#fail(`a filter has at most ${VALUES_MAX} values`);
    return comparison;
  }

  #checked(field: TextField, pattern: TextPattern): TextPattern {
    const { kind, text } = pattern;
    if (field === 'error') return { kind: 'contains', text: text.toLowerCase() };
    if (field === 'status' && kind === 'equal' && !STATUSES.includes(text)) {
      this.#fail(`status: expects one of ${STATUSES.join(', ')}`);
    }
    if (field !== 'trace' && field !== 'run') return pattern;
    const [, ...parts] = ID.exec(text) ?? [];
    if (kind !== 'equal' || parts.length === 0) this.#fail(`${field}: expects a full id`);
    return { kind, text: parts.join('-').toLowerCase() };
  }

  #patterns(label: string): TextPattern[] {
    const patterns: TextPattern[] = [];
    do {
      const { kind, text } = this.#pattern();
      if (text === '' && kind === 'equal') this.#fail(`${label} expects a value`);
      patterns.push({ kind, text });
    } while (this.#eat(COMMA));
    return patterns;
  }

  #pattern(): TextPattern {
    let isOpenAtStart = this.#eat(STAR_BEFORE_QUOTE) !== undefined;
    let text = this.#quoted();
    let isOpenAtEnd = text !== undefined && this.#eat(STAR) !== undefined;
    if (text === undefined) {
      const bare = this.#bare(',');
      isOpenAtStart = bare.startsWith('*');
      isOpenAtEnd = bare.endsWith('*');
      text = bare.slice(isOpenAtStart ? 1 : 0, isOpenAtEnd && bare !== '*' ? -1 : undefined);
    }
    if (isOpenAtStart && isOpenAtEnd) return { kind: 'contains', text };
    return { kind: isOpenAtStart ? 'suffix' : isOpenAtEnd ? 'prefix' : 'equal', text };
  }

  #bounds(label: string, operator: string, expected: string, parse: (text: string) => number | undefined): Bound[] {
    const text = this.#bare();
    const [min = '', max, ...others] = operator === ':' ? text.split('..') : [text];
    const sign = operator === ':' ? '=' : operator;
    const limits = Object.entries(max === undefined ? { [sign]: min } : { '>=': min, '<=': max });
    const given = limits.filter(([, limit]) => limit !== '').map(([is, limit]) => [is, parse(limit)] as const);
    if (given.length === 0 || others.length > 0 || given.some(([, amount]) => amount === undefined))
      this.#fail(`${label} expects ${expected}`);
    return given.map(([is, amount = 0]) => ({ operator: is as Bound['operator'], amount }));
  }

  #quoted(): string | undefined {
    const [, text, end] = this.#eat(QUOTED) ?? [];
    if (end === '') this.#isQuoteOpen = true;
    return text?.replace(/\\(.)/gs, '$1');
  }

  /** Reads text up to a space, the character `stop`, or the parenthesis that closes the group. */
  #bare(stop?: string): string {
    const start = this.#at;
    for (let open = 0; this.#at < this.#text.length; this.#at += 1) {
      const character = this.#text[this.#at] as string;
      if (character === stop || /\s/.test(character)) break;
      if (character === '(') open += 1;
      if (character === ')') open -= 1;
      if (open < 0 && this.#groups > 0) break;
    }
    return this.#text.slice(start, this.#at);
  }

  #peekBare(): string {
    const start = this.#at;
    const text = this.#bare();
    this.#at = start;
    return text;
  }

  #eat(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text) ?? undefined;
    if (match !== undefined) this.#at += match[0].length;
    return match;
  }

  #fail(problem: string): FilterNode {
    this.#problem ??= problem;
    return { all: [] };
  }
}

function isTopLevel(item: FilterNode | TopLevel): item is TopLevel {
  return 'value' in item;
}

const ID = /^([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$/i;
