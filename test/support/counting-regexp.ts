/**
 * Matches regular expressions by backtracking, like an engine, and counts the steps, because times depend on the
 * machine. Supports the syntax that this project uses, and throws for other syntax.
 */
type Node =
  | { readonly kind: 'char'; readonly holds: (char: string) => boolean }
  | { readonly kind: 'assertion'; readonly holds: (text: string, at: number) => boolean }
  | { readonly kind: 'sequence' | 'choice'; readonly nodes: readonly Node[] }
  | { readonly kind: 'look'; readonly node: Node; readonly isBehind: boolean; readonly isNegative: boolean }
  | {
      readonly kind: 'repeat';
      readonly node: Node;
      readonly min: number;
      readonly max: number;
      readonly isLazy: boolean;
    };

/** The lookbehinds of this project are short. */
const BEHIND_MAX = 64;

export class CountingRegExp {
  readonly #root: Node;
  readonly #isSticky: boolean;
  #steps = 0;

  constructor({ source, flags }: RegExp) {
    this.#root = new Parser(source, flags.replace(/[dgy]/g, '')).parse();
    this.#isSticky = flags.includes('y');
  }

  /** Returns the number of steps to find all matches in a text. */
  steps(text: string): number {
    this.#steps = 0;
    for (let start = 0; start <= text.length; start++) {
      let end = -1;
      const isFound = this.#match(this.#root, text, start, (at) => {
        end = at;
        return true;
      });
      if (!isFound && this.#isSticky) break;
      if (isFound && end > start) start = end - 1;
    }
    return this.#steps;
  }

  /** Returns texts that need many steps: repetitions of the repeated parts, with different beginnings and ends. */
  pumps(length: number): string[] {
    const texts = new Set<string>();
    const add = (prefix: string, word: string): void => {
      if (word === '') return;
      const pumped = prefix + word.repeat(Math.ceil(length / word.length));
      for (const end of ['', '\0', '!', '"', ' ', '\n', word.slice(0, -1)]) texts.add(pumped + end);
    };
    for (const char of 'a0A -_./:;=@"\\\n\té%') add('', char);
    for (const word of samples(this.#root, 4)) add('', word);
    const visit = (node: Node, prefixes: readonly string[]): void => {
      if (node.kind === 'repeat') {
        if (node.max > 8) for (const word of samples(node.node, 4)) for (const prefix of prefixes) add(prefix, word);
        visit(node.node, prefixes);
      } else if (node.kind === 'choice') {
        for (const inner of node.nodes) visit(inner, prefixes);
      } else if (node.kind === 'sequence') {
        node.nodes.forEach((inner, at) => {
          const before = samples({ kind: 'sequence', nodes: node.nodes.slice(0, at) }, 2);
          const all = prefixes.flatMap((prefix) => before.map((word) => prefix + word));
          for (const word of all) add('', word);
          visit(inner, all);
        });
      }
    };
    visit(this.#root, ['']);
    return [...texts];
  }

  #match(node: Node, text: string, at: number, then: (at: number) => boolean): boolean {
    this.#steps++;
    switch (node.kind) {
      case 'char':
        return at < text.length && node.holds(text.charAt(at)) && then(at + 1);
      case 'assertion':
        return node.holds(text, at) && then(at);
      case 'sequence':
        return this.#sequence(node.nodes, 0, text, at, then);
      case 'choice':
        return node.nodes.some((inner) => this.#match(inner, text, at, then));
      case 'look':
        return this.#looks(node, text, at) !== node.isNegative && then(at);
      case 'repeat':
        return this.#repeat(node, 0, text, at, then);
    }
  }

  #sequence(nodes: readonly Node[], index: number, text: string, at: number, then: (at: number) => boolean): boolean {
    const node = nodes[index];
    if (node === undefined) return then(at);
    return this.#match(node, text, at, (next) => this.#sequence(nodes, index + 1, text, next, then));
  }

  #looks({ node, isBehind }: Extract<Node, { kind: 'look' }>, text: string, at: number): boolean {
    if (!isBehind) return this.#match(node, text, at, () => true);
    const [min, max] = lengthsOf(node);
    for (let start = at - min; start >= Math.max(0, at - Math.min(max, BEHIND_MAX)); start--) {
      if (this.#match(node, text, start, (end) => end === at)) return true;
    }
    return false;
  }

  #repeat(
    node: Extract<Node, { kind: 'repeat' }>,
    count: number,
    text: string,
    at: number,
    then: (at: number) => boolean,
  ): boolean {
    const more = (): boolean =>
      count < node.max &&
      this.#match(
        node.node,
        text,
        at,
        (next) => (next > at || count < node.min) && this.#repeat(node, count + 1, text, next, then),
      );
    const enough = (): boolean => count >= node.min && then(at);
    return node.isLazy ? enough() || more() : more() || enough();
  }
}

/** Returns the lengths of the shortest and the longest text that a node matches. */
function lengthsOf(node: Node): [min: number, max: number] {
  switch (node.kind) {
    case 'char':
      return [1, 1];
    case 'sequence':
    case 'choice': {
      const all = node.nodes.map(lengthsOf);
      const [mins, maxs] = [all.map(([min]) => min), all.map(([, max]) => max)];
      if (node.kind === 'choice') return [Math.min(...mins), Math.max(...maxs)];
      return [mins.reduce((sum, min) => sum + min, 0), maxs.reduce((sum, max) => sum + max, 0)];
    }
    case 'repeat': {
      const [min, max] = lengthsOf(node.node);
      return [min * node.min, max === 0 ? 0 : max * node.max];
    }
    default:
      return [0, 0];
  }
}

function samples(node: Node, countMax: number): string[] {
  switch (node.kind) {
    case 'char':
      return [...'a0A -_./:;=@"\\\n\t%xeé,\'`~[]{}()<>+*?&|^$#!\0'].filter(node.holds).slice(0, countMax);
    case 'choice':
      return node.nodes.flatMap((inner) => samples(inner, 1)).slice(0, countMax * 2);
    case 'repeat':
      return node.max === 0
        ? ['']
        : samples(node.node, countMax).map((word) => word.repeat(Math.min(node.max, Math.max(node.min, 1))));
    case 'sequence':
      return node.nodes.reduce<string[]>(
        (words, inner) => {
          const own = samples(inner, countMax);
          return own.length === 0 ? words : own.map((word, index) => (words[index % words.length] ?? '') + word);
        },
        [''],
      );
    default:
      return [''];
  }
}

class Parser {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw new SyntaxError(`${this.#source}: left at ${this.#at}`);
    return node;
  }

  #choice(): Node {
    const nodes = [this.#sequence()];
    while (this.#take('|')) nodes.push(this.#sequence());
    return nodes.length === 1 ? (nodes[0] as Node) : { kind: 'choice', nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source.charAt(this.#at)))
      nodes.push(this.#quantified());
    return { kind: 'sequence', nodes };
  }

  #quantified(): Node {
    const node = this.#atom();
    const [whole = '', mark, least, comma, most] =
      /^(?:([*+?])|\{(\d+)(,?)(\d*)\})/.exec(this.#source.slice(this.#at)) ?? [];
    if (whole === '') return node;
    this.#at += whole.length;
    const isLazy = this.#take('?');
    const [min, max] =
      mark === undefined
        ? [Number(least), comma === '' ? Number(least) : most === '' ? Number.POSITIVE_INFINITY : Number(most)]
        : [mark === '+' ? 1 : 0, mark === '?' ? 1 : Number.POSITIVE_INFINITY];
    return { kind: 'repeat', node, min, max, isLazy };
  }

  #atom(): Node {
    const rest = this.#source.slice(this.#at);
    const [group, sign] = /^\((?:\?(:|<?[=!]|<\w+>))?/.exec(rest) ?? [];
    if (group !== undefined) {
      this.#at += group.length;
      const node = this.#choice();
      if (!this.#take(')')) throw new SyntaxError(`${this.#source}: no end of a group`);
      if (sign === undefined || sign === ':' || sign.length > 2) return node;
      return { kind: 'look', node, isBehind: sign.startsWith('<'), isNegative: sign.endsWith('!') };
    }
    const [text] =
      /^(?:\[(?:\\.|[^\]\\])*\]|\\[pP]\{\w+(?:=\w+)?\}|\\u\{[\da-fA-F]+\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\.|.)/s.exec(
        rest,
      ) ?? [''];
    this.#at += text.length;
    if (/^(?:\^|\$|\\[bB])$/.test(text)) return { kind: 'assertion', holds: this.#assertion(text) };
    // A back reference counts as an empty sequence.
    if (/^\\[1-9]/.test(text)) return { kind: 'sequence', nodes: [] };
    const one = new RegExp(`^(?:${text})$`, this.#flags);
    const known = new Map<string, boolean>();
    const holds = (char: string): boolean => {
      if (!known.has(char)) known.set(char, one.test(char));
      return known.get(char) === true;
    };
    return { kind: 'char', holds };
  }

  #assertion(text: string): (text: string, at: number) => boolean {
    const isWord = (char: string): boolean => /\w/.test(char);
    const isMultiline = this.#flags.includes('m');
    if (text === '^') return (all, at) => at === 0 || (isMultiline && all.charAt(at - 1) === '\n');
    if (text === '$') return (all, at) => at === all.length || (isMultiline && all.charAt(at) === '\n');
    return (all, at) => (isWord(all.charAt(at - 1)) !== isWord(all.charAt(at))) === (text === '\\b');
  }

  #take(char: string): boolean {
    if (this.#source.charAt(this.#at) !== char) return false;
    this.#at++;
    return true;
  }
}
