import { RunspanError } from '../base/errors.ts';
import { isLoopback } from '../base/options.ts';

/**
 * The address of a service. A RunspanError (`RUNSPAN_INVALID_OPTION`) names the option where it is none, holds credentials, a
 * query or a fragment, or where a key would go over plain HTTP to another machine.
 */
export function serviceAddress(
  option: string,
  given: unknown,
  { hasKey, allowInsecure = false }: { readonly hasKey: boolean; readonly allowInsecure: boolean | undefined },
): URL {
  const url =
    given instanceof URL ? given : typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined;
  const problem = given === undefined ? 'is missing' : problemOf(url);
  if (problem !== undefined || url === undefined) {
    throw new RunspanError(
      'RUNSPAN_INVALID_OPTION',
      `Expected \`${option}\` to be an http or https address, such as https://host/path, got one that ${problem}`,
    );
  }
  if (hasKey && !allowInsecure && url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new RunspanError(
      'RUNSPAN_INVALID_OPTION',
      `Expected \`${option}\` to be an https address: a key is not sent over plain HTTP to another machine unless \`allowInsecure\` is set`,
    );
  }
  return url;
}

/** Never with the address in it, which may hold credentials. */
function problemOf(url: URL | undefined): string | undefined {
  if (url === undefined) return 'cannot be read';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'begins with neither';
  if (url.username !== '' || url.password !== '') return 'holds a user or password';
  return url.search === '' && url.hash === '' ? undefined : 'has a query or fragment';
}
