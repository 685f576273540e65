import { wholeFrom } from '../base/options.ts';
import type { BodyRules } from './body-rules.ts';

/** The part of a list of an agent server that is wanted. */
export interface PageRequest {
  /** Items of a page, 1 to 1 000. @default 10 */
  limit?: number;
  /** Items that are passed over. @default 0 */
  offset?: number;
}

export const PAGE_RULES: BodyRules<PageRequest> = {
  limit: wholeFrom(1, 1_000),
  offset: wholeFrom(0, Number.MAX_SAFE_INTEGER),
};
