import { SecretNames } from '../run/secret-names.ts';
import { Api } from './api.ts';
import type { ClientOptions } from './client-options.ts';
import { Secrets } from './secrets.ts';
import { serviceAddress } from './service-address.ts';

const secretNames = new SecretNames([], true);

/** Where a service is, and by what it knows its callers. */
export interface Service {
  /** The option that gives the address. */
  readonly option: string;
  readonly url: unknown;
  /** Headers that are sent to it alone; those that are undefined are not there. */
  readonly credentials: Readonly<Record<string, string | undefined>>;
}

/** What sends calls to a service, with checked options. A RunspanError names what of them cannot be used. */
export function serviceApi({ option, url, credentials }: Service, options: ClientOptions): Api {
  const { apiKey: _key, allowInsecure, headers: custom = {}, ...rest } = options;
  const own = Object.entries(credentials).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const customSecrets = Object.entries(custom).filter(([name]) => secretNames.kindOf(name) !== undefined);
  const secrets = [...own, ...customSecrets].map(([, value]) => value.replace(/^Bearer /i, ''));
  return new Api({
    ...rest,
    url: serviceAddress(option, url, { hasKey: secrets.length > 0, allowInsecure }),
    headers: { ...Object.fromEntries(own), ...custom },
    secrets: new Secrets(secrets),
  });
}
