import { recordFetch } from '../integrations/fetch/record-fetch.ts';
import { startOnce } from './start.ts';

// Replaces `register.ts` on Workers and on Vercel's edge runtime, where all modules are part of one bundle.

export const started: readonly string[] = startOnce([{ name: 'fetch', start: () => recordFetch() }]);
