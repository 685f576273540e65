import { isHeaderKey, isLoopback } from '../../config/checker.ts';
import { environment } from '../../platform/node.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import { keyOfFormat, keyVariables } from '../../services/keys.ts';
import { variablesInFiles } from '../doctor/project.ts';

/** What decides where a recorded call may be sent. */
export interface ServiceRules {
  /** The folder with the files `.env` and `.env.local`, which are read for each request. */
  readonly folder: string;
  /** Origins that the user has named. */
  readonly allowed: readonly string[];
}

type Variables = NodeJS.Dict<string>;

/**
 * Returns the header with the key for a call. A key goes only to an origin that the table of services lists for its
 * variable, that a variable `*_BASE_URL` beside it names, or that the user has named. Throws an HTTP 409 error for any
 * other origin, and if the key of a listed service is missing. The key is in no error.
 */
export function keyHeader(url: URL, call: string, rules: ServiceRules): Record<string, string> {
  const { origin } = url;
  const listed = keyVariables(origin);
  const { keys, isNamed } = keysFor(origin, call, rules);
  if (listed === undefined && !isNamed) {
    throw new HttpError(
      409,
      // The command is not written out, because an imported trace may name the host `$(id)`.
      `nothing is sent to ${origin}, which is no known service, and which no variable such as OPENAI_BASE_URL names; start runspan dev with --allow-service if you trust it`,
    );
  }
  const [name, value] = keys[0] ?? [];
  if (name === undefined || value === undefined) {
    if (isNamed || listed?.length === 0) return {};
    throw new HttpError(
      409,
      `the key for ${origin} is missing: set ${listed?.[0]} in the environment of runspan dev, or in the file .env of its folder; a key whose *_BASE_URL names another service is not sent`,
    );
  }
  // The error of `fetch` for an invalid header contains the header.
  if (!isHeaderKey(value))
    throw new HttpError(409, `the key in ${name} is not sent: it has a space or another character that no key has`);
  if (url.protocol !== 'https:' && !isLoopback(url.hostname))
    throw new HttpError(409, `the key is not sent to ${origin} over plain HTTP; use https`);
  const header = name.startsWith('AZURE_') ? 'api-key' : (keyOfFormat(call)?.header ?? 'authorization');
  return { [header]: header === 'authorization' ? `Bearer ${value}` : value };
}

/** Returns the keys that an origin may get, the best first, and whether a variable or the user names the origin. */
function keysFor(origin: string, call: string, { folder, allowed }: ServiceRules) {
  const files: Variables = Object.assign({}, ...variablesInFiles(folder).map(([, variables]) => variables));
  const both = [environment(), files];
  const bases = both.map(basesIn);
  // An address in `.env` gets no key of the environment.
  const named = bases.flatMap((some, at) =>
    some.flatMap(([name, base]) => (base === origin ? keysIn([name], both.slice(at)) : [])),
  );
  const others = new Set(bases.flat().flatMap(([name, base]) => (base === origin ? [] : name)));
  const listed = (keyVariables(origin) ?? []).filter((name) => !others.has(name));
  const isAllowed = allowed.includes(origin);
  const ofFormat = keyOfFormat(call)?.variables ?? [];
  // Variables of several formats may name the same gateway.
  const best = named.filter(([name]) => ofFormat.includes(name));
  return {
    keys: [...best, ...named, ...keysIn(listed, both), ...keysIn(isAllowed ? ofFormat : [], both)],
    isNamed: isAllowed || bases.flat().some(([, base]) => base === origin),
  };
}

type Key = readonly [name: string, value: string];

function keysIn(names: readonly string[], sources: readonly Variables[]): Key[] {
  return names.flatMap((name) =>
    sources.flatMap((source): Key[] => {
      const value = source[name]?.trim();
      return value ? [[name, value]] : [];
    }),
  );
}

/** Returns the variables for keys whose service has another address, with the origin: `OPENAI_BASE_URL` for `OPENAI_API_KEY`. */
function basesIn(source: Variables): Key[] {
  return Object.entries(source).flatMap(([name, value = '']): Key[] => {
    const [prefix] = /^\w+(?=_BASE_URL$)|^AZURE_OPENAI(?=_ENDPOINT$)/.exec(name) ?? [];
    if (prefix === undefined || !URL.canParse(value)) return [];
    return [[`${prefix.replace(/^GOOGLE_(?=GEMINI$)/, '')}_API_KEY`, new URL(value).origin]];
  });
}
