import { exactJson, fieldsOf, isFields, parseExact, put, textOf } from '../../payload/fields.ts';
import { messagesOfInputs } from '../../services/conversation.ts';
import type { Message, Part } from '../../services/message.ts';

/** The keys and indexes that lead to a value in a request. */
export type Path = readonly string[];

/** Maximum number of probes. Each reads the whole request. Texts that are not proved by then have no path. */
const PROBES_MAX = 40;

/**
 * Returns the paths of the texts of messages in a request of any format. Changing the request at a path changes the text
 * of this part, and nothing else in the messages. The evidence is a probe: it replaces a group of texts with tokens and
 * reads the messages again. If only texts differ, a token is where its text was. Otherwise each half of the group is probed.
 */
export function pathsOfTexts(request: unknown, messages: readonly Message[]): Map<Part, Path> {
  const paths = new Map<Part, Path>();
  const json = JSON.stringify(messages);
  const parts = messages.flatMap((message) => message.parts);
  const groups = groupsOf(request, new Set(parts.map(textOfPart)));
  const probe = parseExact(exactJson(request));
  for (const group of groups) {
    const tokens = new Map<unknown, Path>(group.map((path, at) => [`the text of a probe ${at}`, path]));
    for (const [token, path] of tokens) setAt(probe, path, token);
    const read = messagesOfInputs(probe) ?? [];
    const found = read.flatMap((message) => message.parts.map((part) => tokens.get(textOfPart(part))));
    let hits = 0;
    const restored = JSON.stringify(read, (_, value) => {
      const path = tokens.get(value);
      hits += path === undefined ? 0 : 1;
      return path === undefined ? value : valueAt(request, path);
    });
    const isEachOnce = hits === new Set(found.filter((path) => path !== undefined)).size;
    if (isEachOnce && restored === json)
      for (const [at, part] of parts.entries()) found[at] && paths.set(part, found[at]);
    else if (group.length > 1 && groups.length < PROBES_MAX) groups.push(group.splice(group.length / 2), group);
    for (const path of tokens.values()) setAt(probe, path, valueAt(request, path));
  }
  return paths;
}

/** Returns the text of a part that can be edited as text. */
export function textOfPart(part: Part): string | undefined {
  return part.kind === 'result' ? textOf(part.value) : 'text' in part ? part.text : undefined;
}

export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((inner: unknown, key) => (Object(inner) as Record<string, unknown>)[key], value);
}

function setAt(value: unknown, path: Path, text: unknown): void {
  put(Object(valueAt(value, path.slice(0, -1))), path.at(-1) ?? '', text);
}

/** Returns a copy with another value at a path. In an object, `undefined` removes the value from its JSON. */
export function withValue(value: unknown, [key, ...rest]: Path, changed: unknown): unknown {
  if (key === undefined) return changed;
  const inner = withValue(valueAt(value, [key]), rest, changed);
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...fieldsOf(value), [key]: inner };
}

/** Returns the paths of the given texts, grouped by their last key. A group is most often the texts of messages only. */
function groupsOf(request: unknown, texts: ReadonlySet<string | undefined>): Path[][] {
  const groups = new Map<string, Path[]>();
  const add = (value: unknown, path: Path): void => {
    if (typeof value === 'string' && texts.has(value)) {
      const key = path.findLast((one) => !/^\d+$/.test(one)) ?? '';
      groups.get(key)?.push(path) ?? groups.set(key, [path]);
    } else if (isFields(value) || Array.isArray(value))
      for (const [key, item] of Object.entries(value)) add(item, [...path, key]);
  };
  add(request, []);
  return [...groups.values()].slice(0, PROBES_MAX);
}
