import { InvalidRequestError } from '../../errors.ts';
import type * as archive from './source-archive.ts';

export const ARCHIVE_BYTES_MAX: typeof archive.ARCHIVE_BYTES_MAX = 0;

export const sourceArchive: typeof archive.sourceArchive = async (call) => {
  const msg = 'A browser cannot read the source; upload it from Node.js';
  throw new InvalidRequestError(call, [{ loc: ['source'], msg, type: 'value_error' }]);
};
