import { describe } from 'vitest';
import { testReads } from '../receiver/langsmith-reads.ts';

const path = new URL('./zero-code/node_modules/langsmith/index.mjs', import.meta.url).href;
const { Client } = (await import(path)) as { Client: Parameters<typeof testReads>[0] };

describe('the LangSmith client of version 0.12', () => testReads(Client));
