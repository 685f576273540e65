import { Api } from './api.ts';
import type { ClientOptions } from './client-options.ts';
import { secretsIn } from './headers.ts';
import { Secrets } from './secrets.ts';
import { serviceAddress } from './service-address.ts';

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
  const own = Object.entries(credentials).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value.trim()]],
  );
  const headers = { ...Object.fromEntries(own), ...custom };
  // By their names: the workspace is none, and errors may tell it.
  const secrets = secretsIn(headers);
  return new Api({
    ...rest,
    ...(allowInsecure === undefined ? {} : { allowInsecure }),
    url: serviceAddress(option, url, { hasKey: secrets.length > 0, allowInsecure }),
    headers,
    secrets: new Secrets(secrets),
  });
}
