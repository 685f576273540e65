import { recordFetch } from '../integrations/fetch/record-fetch.ts';
import { startOnce } from './start.ts';

// Replaces `register.ts` on Workers and Vercel's edge runtime, because all modules are in one bundle there.

export const started: readonly string[] = startOnce([{ name: 'fetch', start: () => recordFetch() }]);
