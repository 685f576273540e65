import { SecretNames } from '../../payload/secret-names.ts';
import { text } from './values.ts';

/** The mask for credentials in OpenTelemetry's conventions. */
const REDACTED = 'REDACTED';

/**
 * Query parameters that contain signatures and keys. The conventions for HTTP name some of them. Google's model APIs
 * use `key`.
 */
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

/** Matches the user and the password. */
const USER = /^([a-z][a-z\d+.-]*:\/\/)[^/?#\s]*@/i;

/** Matches a parameter in a query or a fragment. */
const PARAMETER = /(?<=[?&#;]|^)([^?&#;=]{1,128})=([^&#;]+)/g;

/**
 * Returns a URL, or a part of a URL, without user, password, keys and signatures. Returns undefined if the value is not
 * text.
 */
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
