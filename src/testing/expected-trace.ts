import { RunspanError } from '../base/errors.ts';
import { type Checks, checkedOptions, TRUE_OR_FALSE } from '../config/checker.ts';
import {
  type AsymmetricMatcher,
  type Comparison,
  checkedExpectation,
  type ExpectedFields,
  fieldChecks,
} from './expected-fields.ts';
import type { Tree } from './forest.ts';
import { factsOf } from './recorded-run.ts';

/** An expected run and its child runs. Pass a string to expect a run with this name and no child runs. */
export type ExpectedTrace = string | ExpectedNode;

/** An expected run and its expected child runs. */
export interface ExpectedNode extends ExpectedFields {
  name: string | RegExp | AsymmetricMatcher;
  /** Expected child runs. @default none */
  children?: readonly ExpectedTrace[];
}

/** Options of `toMatchTrace`. */
export interface TraceMatchOptions {
  /**
   * Whether additional runs make the assertion fail. Set `false` to allow additional runs at every level. @default true
   */
  complete?: boolean;
  /** Whether siblings must be in the expected order. Set `false` to allow any order. @default true */
  ordered?: boolean;
}

interface Node extends ExpectedNode {
  readonly children: readonly Node[];
}

const NODE_CHECKS: Checks<ExpectedNode> = {
  ...fieldChecks,
  children: ['a list of runs', (value) => Array.isArray(value)],
};

const OPTION_CHECKS: Checks<TraceMatchOptions> = { complete: TRUE_OR_FALSE, ordered: TRUE_OR_FALSE };

export function checkedTrace(expected: unknown): readonly Node[] {
  return (Array.isArray(expected) ? expected : [expected]).map((given) => {
    const node = checkedExpectation('a run of the tree', given, NODE_CHECKS);
    if (node.name === undefined) {
      throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected a run of the tree to have a `name`, got one without');
    }
    return { ...node, name: node.name, children: checkedTrace(node.children ?? []) };
  });
}

export function checkedMatchOptions(options: unknown): Required<TraceMatchOptions> {
  return { complete: true, ordered: true, ...checkedOptions('the options', options, OPTION_CHECKS) };
}

/** Index of the recorded run that is paired with each expected run. */
type Pairs = (number | undefined)[];

export class TraceComparison {
  readonly #comparison: Comparison;
  readonly #options: Required<TraceMatchOptions>;
  /** Caches differences, because the same two runs may be compared several times. */
  readonly #known = new Map<Node, Map<Tree, readonly string[]>>();

  constructor(comparison: Comparison, options: Required<TraceMatchOptions>) {
    this.#comparison = comparison;
    this.#options = options;
  }

  /** Returns one line per difference. Each line starts with the path of the run. */
  differences(recorded: readonly Tree[], expected: readonly Node[], path = ''): string[] {
    const { complete, ordered } = this.#options;
    const prefix = path === '' ? '' : `${path}: `;
    const paths = pathsOf(recorded, path);
    const pairs = this.#pairs(recorded, expected, paths);
    const lines = expected.flatMap((node, index) => {
      const at = pairs[index] ?? -1;
      const tree = recorded[at];
      if (tree === undefined) return [`${prefix}there is no ${this.#comparison.shown(node.name)}`];
      return this.#differencesOf(tree, node, paths[at] ?? '');
    });
    for (const at of recorded.keys()) {
      if (complete && !pairs.includes(at)) lines.push(`${paths[at]}: not expected`);
    }
    const isInOrder = pairs.every((at = -1, index) => index === 0 || at > (pairs[index - 1] ?? -1));
    if (lines.length > 0 || !ordered || isInOrder) return lines;
    const found = recorded.filter((_, at) => pairs.includes(at)).map(({ run }) => run.name);
    const order = expected.map(({ name }) => name);
    return [`${prefix}expected the order ${this.#comparison.shown(order)}, got ${this.#comparison.shown(found)}`];
  }

  /**
   * Pairs each expected run with a matching recorded run. If no recorded run matches, a run with the same name is used,
   * to report the differences.
   */
  #pairs(recorded: readonly Tree[], expected: readonly Node[], paths: readonly string[]): Pairs {
    const { complete, ordered } = this.#options;
    const isNamed = (tree: Tree | undefined, { name }: Node): boolean =>
      tree !== undefined && this.#comparison.isNamed(factsOf(tree.run), name);
    const hasSameNames =
      recorded.length === expected.length && expected.every((node, at) => isNamed(recorded[at], node));
    if (complete && ordered && hasSameNames) return [...expected.keys()];
    const matches = expected.map((node) =>
      recorded.map((tree, at) => isNamed(tree, node) && this.#differencesOf(tree, node, paths[at] ?? '').length === 0),
    );
    const pairs = ordered ? pairsInOrder(matches) : pairsInAnyOrder(matches);
    for (const [index, node] of expected.entries()) {
      const at = recorded.findIndex((tree, other) => !pairs.includes(other) && isNamed(tree, node));
      if (at >= 0) pairs[index] ??= at;
    }
    return pairs;
  }

  #differencesOf(tree: Tree, node: Node, path: string): readonly string[] {
    const ofNode = this.#known.get(node) ?? new Map<Tree, readonly string[]>();
    const known = ofNode.get(tree);
    if (known !== undefined) return known;
    const fields = this.#comparison.fieldDifferences(factsOf(tree.run), node).map((line) => `${path}: ${line}`);
    const lines = [...fields, ...this.differences(tree.children, node.children, path)];
    this.#known.set(node, ofNode.set(tree, lines));
    return lines;
  }
}

/**
 * Returns the path of each sibling, for example `answer > search`. The path of the second run with this name is
 * `answer > search #2`.
 */
function pathsOf(siblings: readonly Tree[], parentPath: string): string[] {
  const counts = new Map<string, number>();
  return siblings.map(({ run: { name } }) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return `${parentPath === '' ? '' : `${parentPath} > `}${name}${count === 1 ? '' : ` #${count}`}`;
  });
}

/**
 * Pairs each expected run with its first match after the previously paired run. `matches[expected][recorded]` is true
 * if the two runs match.
 */
function pairsInOrder(matches: readonly (readonly boolean[])[]): Pairs {
  let next = 0;
  return matches.map((row) => {
    const at = row.indexOf(true, next);
    if (at < 0) return undefined;
    next = at + 1;
    return at;
  });
}

/**
 * Finds as many pairs as possible. If all matches of an expected run are taken, one of the taken runs is paired again
 * with another match. This is an augmenting path:
 * https://en.wikipedia.org/wiki/Hopcroft–Karp_algorithm#Augmenting_paths
 */
function pairsInAnyOrder(matches: readonly (readonly boolean[])[]): Pairs {
  const pairs: Pairs = matches.map(() => undefined);
  const pair = (expected: number, tried: Set<number>): boolean =>
    (matches[expected] ?? []).some((isMatch, at) => {
      if (!isMatch || tried.has(at)) return false;
      tried.add(at);
      const other = pairs.indexOf(at);
      if (other !== -1 && !pair(other, tried)) return false;
      pairs[expected] = at;
      return true;
    });
  for (const expected of matches.keys()) pair(expected, new Set());
  return pairs;
}
