import { SecretNames } from '../../payload/secret-names.ts';
import { text } from './values.ts';

/** What stands for a credential, as in OpenTelemetry's own conventions. */
const REDACTED = 'REDACTED';

/** Query parameters that sign a request, some of which the conventions for HTTP name; `key` is that of Google's models. */
const SIGNATURES: ReadonlySet<string> = new Set([
  'auth',
  'awsaccesskeyid',
  'key',
  'sig',
  'signature',
  'x-amz-signature',
  'x-goog-signature',
]);

const names = new SecretNames([], true);

/** From the two slashes to the last `@` before the path. */
const USER = /^([a-z][a-z\d+.-]*:\/\/)[^/?#\s]*@/i;

/** A name and its value, in a query or a fragment. */
const PARAMETER = /(?<=[?&#;]|^)([^?&#;=]{1,128})=([^&#;]+)/g;

/** A URL, or a part of one, without user, password, keys and signatures; undefined for what is no text. */
export function withoutCredentials(value: unknown): string | undefined {
  const url = text(value);
  if (url === undefined) return undefined;
  const anonymous = url.replace(USER, '$1');
  if (!anonymous.includes('=')) return anonymous;
  return anonymous.replace(PARAMETER, (parameter, name: string, value: string) =>
    isSecret(name, value) ? `${name}=${REDACTED}` : parameter,
  );
}

function isSecret(name: string, value: string): boolean {
  return SIGNATURES.has(name.toLowerCase()) || names.hidesInUrl(name, value);
}
