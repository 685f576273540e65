import { type Checks, wholeFrom } from '../base/options.ts';
import { type CallOptions, callChecks } from './client-options.ts';

/** Which part of a list is asked for. */
export interface ListOptions extends CallOptions {
  /**
   * Items of a page, 100 at the most.
   *
   * @default 20
   */
  limit?: number;
  /** How many items are passed over. */
  offset?: number;
}

export const listChecks: Checks<ListOptions> = {
  ...callChecks,
  limit: wholeFrom(1, 100),
  offset: wholeFrom(0, Number.MAX_SAFE_INTEGER),
};
