import { aiSdk, aiSdkBesideGenAi } from './ai-sdk.ts';
import { database } from './database.ts';
import { genAi } from './genai.ts';
import { generalAttributes } from './general-attributes.ts';
import { http } from './http.ts';
import { langfuse } from './langfuse.ts';
import { langSmith } from './langsmith.ts';
import { mcp } from './mcp.ts';
import { messaging } from './messaging.ts';
import { openInference } from './openinference.ts';
import { runspanAttributes } from './runspan-attributes.ts';
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
