/** A declaration in the model that API Extractor writes. */
export interface Declaration {
  readonly kind: string;
  readonly name?: string;
  readonly docComment?: string;
  readonly fileUrlPath?: string;
  readonly excerptTokens?: readonly Token[];
  readonly isOptional?: boolean;
  readonly isReadonly?: boolean;
  readonly isStatic?: boolean;
  /** Other names under which it is exported. */
  readonly aliases?: readonly string[];
  readonly propertyTypeTokenRange?: { readonly startIndex: number; readonly endIndex: number };
  readonly members?: readonly Declaration[];
}

interface Token {
  readonly kind: 'Content' | 'Reference';
  readonly text: string;
  readonly canonicalReference?: string;
}

/** The model of an entry point, for example of `runspan/openai`. */
export interface EntryModel {
  readonly specifier: string;
  readonly page: string;
  readonly model: Declaration;
  /** The names as API Extractor reports them, with their aliases. */
  readonly report: string;
}

const GROUPS: readonly (readonly [title: string, kinds: readonly string[]])[] = [
  ['Functions', ['Function']],
  ['Classes', ['Class']],
  ['Constants', ['Variable']],
  ['Types', ['Interface', 'TypeAlias']],
];

/** Characters that fit into one line of a page. */
const SIGNATURE_MAX = 90;

/** Returns the pages of `docs/reference/`, one for each entry point, and their index. */
export function referencePages(entries: readonly EntryModel[]): ReadonlyMap<string, string> {
  const homes = new Map<string, string>();
  for (const entry of entries) setHomes(groupsOf(entry), entry.page, homes);
  // The names of `runspan/langsmith` are those of another package.
  const all = entries.filter(({ page }) => page !== 'langsmith.md').flatMap(exportsOf);
  const pages = new Map(entries.map((entry) => [entry.page, pageOf(entry, new Links(entry, homes, all))]));
  const rows = entries.map(
    ({ specifier, page, model }) => `- [${specifier}](${page}): ${firstSentence(description(model))}\n`,
  );
  const intro =
    'Every public name of the package, by entry point. The pages are generated from the types and their comments.';
  return pages.set('README.md', `# Reference\n\n${intro}\n\n${rows.join('')}`);
}

/** Returns the public names and options without a description. */
export function undescribed(entry: EntryModel): string[] {
  return [...byName(exportsOf(entry))].flatMap(([name, declarations]) => {
    const isDescribed = declarations.some((one) => description(one) !== '' || constantType(one) !== undefined);
    const members = name.endsWith('Options') ? declarations.flatMap((one) => one.members ?? []) : [];
    const missing = members.filter((member) => description(member) === '').map((member) => `${name}.${member.name}`);
    return [...(isDescribed ? [] : [name]), ...missing].map((each) => `${entry.specifier}: ${each}`);
  });
}

/** Returns the declarations with a section of their own. */
function groupsOf(entry: EntryModel) {
  const own = exportsOf(entry).filter((one) => constantType(one) === undefined);
  return GROUPS.map(([title, kinds]) => ({
    title,
    names: byName(own.filter((one) => kinds.includes(one.kind))),
  })).filter(({ names }) => names.size > 0);
}

function pageOf(entry: EntryModel, links: Links): string {
  const own = exportsOf(entry);
  const lines = [`# ${entry.specifier}`, description(entry.model)];
  for (const { title, names } of groupsOf(entry)) {
    lines.push(`## ${title}`);
    for (const [name, declarations] of names) {
      const constants = own.filter((one) => constantType(one) === name).map((one) => `\`${one.name}\``);
      lines.push(`### ${name}`, ...sectionOf(declarations, links));
      if (constants.length > 0) lines.push(`Constants of this type: ${constants.join(', ')}.`);
      const aliases = declarations.flatMap((one) => one.aliases ?? []).map((alias) => `\`${alias}\``);
      if (aliases.length > 0) lines.push(`Also exported as ${aliases.join(', ')}.`);
    }
  }
  return `${lines.filter((line) => line !== '').join('\n\n')}\n`;
}

/** Sets the address of each name. A repeated heading gets a number, as on code hosts. */
function setHomes(
  groups: readonly { title: string; names: ReadonlyMap<string, readonly Declaration[]> }[],
  page: string,
  homes: Map<string, string>,
): void {
  const counts = new Map<string, number>();
  const anchorOf = (heading: string): string => {
    const anchor = heading.toLowerCase();
    const count = counts.get(anchor) ?? 0;
    counts.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  };
  for (const { title, names } of groups) {
    anchorOf(title);
    for (const [name, declarations] of names) {
      const anchor = anchorOf(name);
      for (const one of declarations) homes.set(keyOf(one), `${page}#${anchor}`);
    }
  }
}

/** Returns the lines of one name: its signatures, description and members. Several declarations are overloads. */
function sectionOf(declarations: readonly Declaration[], links: Links): string[] {
  const [first] = declarations as [Declaration];
  const texts = declarations.map(description);
  if (first.kind === 'Interface' || first.kind === 'Class') {
    const isBare = /^\w+ \w+$/.test(signature(first));
    const members = (first.members ?? []).map((member) => memberLine(member, first, links)).join('\n');
    return [isBare ? '' : links.code(first).trim(), ...texts, members];
  }
  const mentioned = [
    ...new Set(declarations.flatMap((one) => links.mentionedIn(one).map((target) => links.to(target)))),
  ];
  const types = mentioned.length > 0 ? `Types: ${mentioned.join(', ')}.` : '';
  return [`\`\`\`ts\n${declarations.map((one) => wrapped(signature(one))).join('\n')}\n\`\`\``, ...texts, types];
}

/** A property has its type after its name, any other member the rest of its signature. */
function memberLine(member: Declaration, parent: Declaration, links: Links): string {
  const { name = '', isOptional, isReadonly, isStatic, propertyTypeTokenRange: range, excerptTokens = [] } = member;
  const isNamed = range !== undefined || /Method/.test(member.kind);
  const modifiers = isNamed ? `${isStatic ? 'static ' : ''}${isReadonly ? 'readonly ' : ''}` : '';
  const label = isNamed ? `**${name.replace(/[[\]]/g, '\\$&')}${isOptional ? '?' : ''}** ` : '';
  const type =
    range === undefined
      ? links.code(member, isNamed ? textOf(member).search(/[<(]/) : 0)
      : links.code({ ...member, excerptTokens: excerptTokens.slice(range.startIndex, range.endIndex) }, 0);
  const text = links.describe(member, parent).replaceAll('\n', '\n  ');
  return `- ${modifiers}${label}${type}${text === '' ? '' : ` – ${text}`}`;
}

/** Creates the links from one page to names. */
class Links {
  readonly #page: string;
  readonly #homes: ReadonlyMap<string, string>;
  readonly #names: ReadonlyMap<string, Declaration>;

  /** @param homes the page and anchor of each declaration */
  constructor(entry: EntryModel, homes: ReadonlyMap<string, string>, all: readonly Declaration[]) {
    this.#page = entry.page;
    this.#homes = homes;
    this.#names = new Map([...all, ...exportsOf(entry)].map((one) => [one.name ?? '', one]));
  }

  to(one: Declaration): string {
    const home = this.#homes.get(keyOf(one)) ?? '';
    return `[\`${one.name}\`](${home.startsWith(`${this.#page}#`) ? home.slice(this.#page.length) : home})`;
  }

  /** Returns the names that the signature of a declaration contains. */
  mentionedIn(one: Declaration): Declaration[] {
    const targets = (one.excerptTokens ?? []).map((token) => this.#target(token));
    return targets.flatMap((target) => (target && target.name !== one.name ? [target] : []));
  }

  /** Returns the description of a member, or of the same member of an interface that its class implements. */
  describe({ name, docComment }: Declaration, parent: Declaration): string {
    const own = description({ kind: parent.kind, docComment: docComment ?? '' });
    if (own !== '') return own;
    const inherited = this.mentionedIn(parent).map((base) => {
      const member = base.members?.find((one) => one.name === name);
      return this.describe(member ?? { kind: '', name: name ?? '' }, base);
    });
    return inherited.find((text) => text !== '') ?? '';
  }

  /** Returns the signature from a character on as inline code in which names are links. */
  code(one: Declaration, from = textOf(one).length - withoutModifiers(textOf(one)).length): string {
    let skip = from;
    let all = '';
    let code = '';
    const end = (): void => {
      all += inlineCode(code);
      code = '';
    };
    for (const token of one.excerptTokens ?? []) {
      const text = token.text.slice(skip);
      skip = Math.max(0, skip - token.text.length);
      const target = this.#target(token);
      if (target === undefined || target.name === one.name) code += text;
      else {
        end();
        all += this.to(target);
      }
    }
    code = code.replace(/;?\s*$/, '');
    end();
    return all;
  }

  #target({ kind, text, canonicalReference = '' }: Token): Declaration | undefined {
    const target = kind === 'Reference' && /^runspan[!/]/.test(canonicalReference) ? this.#names.get(text) : undefined;
    return target !== undefined && this.#homes.has(keyOf(target)) ? target : undefined;
  }
}

/** Returns the name of the exported type of a constant that has no description of its own. */
function constantType(one: Declaration): string | undefined {
  const [, type] = one.excerptTokens ?? [];
  return one.kind === 'Variable' && description(one) === '' && type?.kind === 'Reference' ? type.text : undefined;
}

/** Returns the exports with their public names. */
export function exportsOf({ model, report }: EntryModel): readonly Declaration[] {
  const renamed = [...report.matchAll(/^export \{ (\w+)(?: as (\w+))? \}/gm)];
  return (model.members?.[0]?.members ?? []).map((one) => {
    const names = renamed.flatMap(([, local, name = local ?? '']) => (local === one.name ? [name] : []));
    const name = names.find((each) => each === one.name) ?? names[0] ?? one.name ?? '';
    return { ...one, name, aliases: names.filter((each) => each !== name) };
  });
}

/** Groups the overloads of a function. */
function byName(declarations: readonly Declaration[]): Map<string, Declaration[]> {
  const names = new Set(declarations.map(({ name = '' }) => name));
  return new Map([...names].map((name) => [name, declarations.filter((one) => one.name === name)]));
}

function keyOf({ fileUrlPath = '', name = '' }: Declaration): string {
  return `${fileUrlPath} ${name}`;
}

function textOf({ excerptTokens = [] }: Declaration): string {
  return excerptTokens.map(({ text }) => text).join('');
}

function withoutModifiers(text: string): string {
  return text.replace(/^(export |declare |readonly |const )+/, '');
}

function signature(one: Declaration): string {
  return withoutModifiers(textOf(one)).trim();
}

/** Writes each parameter of a long signature on a line of its own. */
function wrapped(text: string): string {
  const [, head, parameters, rest] = /^(function [^(]+\()(.+)(\): [^)]*.*)$/.exec(text) ?? [];
  if (text.length <= SIGNATURE_MAX || head === undefined || parameters === undefined) return text;
  return `${head}\n  ${parameters.replace(/, (?=\w+\??: )/g, ',\n  ')},\n${rest}`;
}

/** White space at the ends stays outside of the code. */
function inlineCode(code: string): string {
  const [, before = '', text = '', after = ''] = /^(\s*)(.*?)(\s*)$/.exec(code.replace(/\s+/g, ' ')) ?? [];
  if (text === '') return before;
  return before + (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``) + after;
}

/** Returns the text of a comment with one line per paragraph, and with its default value as a sentence. */
function description({ docComment = '' }: Declaration): string {
  const text = docComment
    .replace(/^\/\*\*|\*\/\s*$/g, '')
    .replace(/^ *\* ?/gm, '')
    .replace(/@packageDocumentation/, '')
    .trim();
  if (/^Constructs a new instance of the `\w+` class$/.test(text)) return '';
  const [main = '', byDefault] = text.split(/\s*@default\s+/);
  const paragraphs = main
    .replace(/(?<=\.\s)(`RUNSPAN_[A-Z_]+`)$/, 'Environment variable: $1.')
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.replace(/\n(?!- )/g, ' '));
  const all = byDefault === undefined ? paragraphs : [...paragraphs, `Default: ${defaultText(byDefault)}.`];
  return all
    .filter((paragraph) => paragraph !== '')
    .join(main.includes('\n\n') ? '\n\n' : ' ')
    .replace(/`docs\/([\w-]+\.md)`/g, '[docs/$1](../$1)');
}

/** Marks literals and names of options as code. */
function defaultText(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return /^([\d._]+|true|false|\[\]|'[^']*'|\w+\.\w+)$/.test(line) ? `\`${line}\`` : line;
}

function firstSentence(text: string): string {
  return /^.+?\.(?= |$)/m.exec(text)?.[0] ?? text;
}
