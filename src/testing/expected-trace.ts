import { RunspanError } from '../base/errors.ts';
import { type Checks, checkedOptions } from '../base/options.ts';
import type { AsymmetricMatcher, Comparison } from './comparison.ts';
import { checkedExpectation, type ExpectedFields, fieldChecks, fieldDifferences } from './expected-fields.ts';
import type { Tree } from './forest.ts';
import { assignment, type Pairs, subsequence } from './pairing.ts';
import { factsOf } from './run-facts.ts';

/** A run with those below it; a name alone stands for a run of that name with none below it. */
export type ExpectedTrace = string | ExpectedNode;

export interface ExpectedNode extends ExpectedFields {
  name: string | RegExp | AsymmetricMatcher;
  /** The runs directly below. @default none */
  children?: readonly ExpectedTrace[];
}

/** How a tree is compared with the runs. */
export interface TraceMatchOptions {
  /** False lets there be more runs than the tree has, at every level. @default true */
  complete?: boolean;
  /** False lets siblings stand in any order. @default true */
  ordered?: boolean;
}

/** An expected run whose form has been checked. */
interface Node extends ExpectedNode {
  readonly children: readonly Node[];
}

const NODE_CHECKS: Checks<ExpectedNode> = {
  ...fieldChecks,
  children: ['a list of runs', (value) => Array.isArray(value)],
};

const FLAG = ['true or false', (value: unknown) => typeof value === 'boolean'] as const;
const OPTION_CHECKS: Checks<TraceMatchOptions> = { complete: FLAG, ordered: FLAG };

/** The tree in one form; a RunspanError says what is wrong with it. */
export function checkedTrace(expected: unknown): readonly Node[] {
  return (Array.isArray(expected) ? expected : [expected]).map(checkedNode);
}

export function checkedMatchOptions(options: unknown): Required<TraceMatchOptions> {
  return { complete: true, ordered: true, ...checkedOptions('the options', options, OPTION_CHECKS) };
}

function checkedNode(expected: ExpectedTrace): Node {
  const node = checkedExpectation('a run of the tree', expected, NODE_CHECKS);
  if (node.name === undefined) {
    throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected a run of the tree to have a `name`, got one without');
  }
  return { ...node, name: node.name, children: (node.children ?? []).map(checkedNode) };
}

/** Compares runs, and all below them, with a tree. */
export class TraceComparison {
  readonly #comparison: Comparison;
  readonly #options: Required<TraceMatchOptions>;
  /** What has been compared already: to find pairs, each may be held against each, and so may those below. */
  readonly #known = new Map<Node, Map<Tree, readonly string[]>>();

  constructor(comparison: Comparison, options: Required<TraceMatchOptions>) {
    this.#comparison = comparison;
    this.#options = options;
  }

  /** A line for each difference, with the names that lead to it; none when the runs match. */
  differences(recorded: readonly Tree[], expected: readonly Node[], path = ''): string[] {
    const { complete, ordered } = this.#options;
    const where = path === '' ? '' : `${path}: `;
    const paths = pathsOf(recorded, path);
    const pairs = this.#pairs(recorded, expected, paths);
    const lines = expected.flatMap((node, index) => {
      const at = pairs[index] ?? -1;
      const tree = recorded[at];
      if (tree === undefined) return [`${where}there is no ${this.#comparison.shown(node.name)}`];
      return this.#differencesOf(tree, node, paths[at] ?? '');
    });
    for (const at of recorded.keys()) {
      if (complete && !pairs.includes(at)) lines.push(`${paths[at]}: not expected`);
    }
    if (lines.length > 0 || !ordered || isRising(pairs)) return lines;
    const found = recorded.filter((_, at) => pairs.includes(at)).map(({ run }) => run.name);
    const order = expected.map(({ name }) => name);
    return [`${where}expected the order ${this.#comparison.shown(order)}, got ${this.#comparison.shown(found)}`];
  }

  /** Which run stands for which of the tree: one that matches it, else one of its name, to tell how they differ. */
  #pairs(recorded: readonly Tree[], expected: readonly Node[], paths: readonly string[]): Pairs {
    const { complete, ordered } = this.#options;
    const isNamedAlike = (tree: Tree | undefined, { name }: Node): boolean =>
      tree !== undefined && fieldDifferences(factsOf(tree.run), { name }, this.#comparison).length === 0;
    const isOneToOne =
      recorded.length === expected.length && expected.every((node, at) => isNamedAlike(recorded[at], node));
    if (complete && ordered && isOneToOne) return [...expected.keys()];
    const fits = expected.map((node) =>
      recorded.map(
        (tree, at) => isNamedAlike(tree, node) && this.#differencesOf(tree, node, paths[at] ?? '').length === 0,
      ),
    );
    const pairs = ordered ? subsequence(fits) : assignment(fits);
    for (const [index, node] of expected.entries()) {
      const at = recorded.findIndex((tree, other) => !pairs.includes(other) && isNamedAlike(tree, node));
      if (at >= 0) pairs[index] ??= at;
    }
    return pairs;
  }

  #differencesOf(tree: Tree, node: Node, path: string): readonly string[] {
    const known = this.#known.get(node)?.get(tree);
    if (known !== undefined) return known;
    const fields = fieldDifferences(factsOf(tree.run), node, this.#comparison).map((line) => `${path}: ${line}`);
    const lines = [...fields, ...this.differences(tree.children, node.children, path)];
    const ofNode = this.#known.get(node) ?? new Map<Tree, readonly string[]>();
    this.#known.set(node, ofNode.set(tree, lines));
    return lines;
  }
}

/** `answer > search`, and `answer > search #2` for the second of that name. */
function pathsOf(siblings: readonly Tree[], above: string): string[] {
  const counts = new Map<string, number>();
  return siblings.map(({ run: { name } }) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return `${above === '' ? '' : `${above} > `}${name}${count === 1 ? '' : ` #${count}`}`;
  });
}

function isRising(pairs: Pairs): boolean {
  return pairs.every((at = -1, index) => index === 0 || at > (pairs[index - 1] ?? -1));
}
