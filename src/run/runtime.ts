import { version } from '../base/version.ts';

/** JSON text of `extra.runtime`: what the application runs on. Nothing is read from its environment variables. */
export const runtimeJson: string = JSON.stringify({
  sdk: 'runspan',
  sdk_version: version,
  runtime: 'node',
  runtime_version: process.version,
  platform: `${process.platform}-${process.arch}`,
});
