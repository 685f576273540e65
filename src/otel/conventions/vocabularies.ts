import { aiSdk, aiSdkBesideGenAi } from './ai-sdk.ts';
import { genAi } from './genai.ts';
import { generalAttributes, runspanAttributes } from './general.ts';
import { langfuse } from './langfuse.ts';
import { langSmith } from './langsmith.ts';
import { openInference } from './openinference.ts';
import { database, http, mcp, messaging } from './protocols.ts';
import { traceloop } from './traceloop.ts';
import type { Vocabulary } from './vocabulary.ts';

/**
 * All vocabularies, in order of precedence. A field that one vocabulary has set is not set by a later one. Protocol
 * attributes have the lowest precedence: explicit attributes beat what the URL implies.
 */
export const vocabularies: readonly Vocabulary[] = [
  runspanAttributes,
  langSmith,
  openInference,
  aiSdk,
  genAi,
  aiSdkBesideGenAi,
  traceloop,
  langfuse,
  generalAttributes,
  mcp,
  http,
  database,
  messaging,
];
