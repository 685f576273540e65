import { version } from '../base/version.ts';

/** JSON text of `extra.runtime`: what the application runs on. Nothing is read from its environment variables. */
export const runtimeJson: string = JSON.stringify({
  // Without a `toJSON` that the host may have put on all objects.
  __proto__: null,
  sdk: 'runspan',
  sdk_version: version,
  runtime: 'node',
  runtime_version: process.version,
  platform: `${process.platform}-${process.arch}`,
});
