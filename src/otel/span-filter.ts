import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import type { Check } from '../base/options.ts';
import { shown } from '../base/text.ts';
import type { SpanLike } from './span-like.ts';

/**
 * Which spans become runs: those that a function answers true for, or with `'llm'` those that look like work with models.
 * The function has to answer at once; what it throws, and any other answer, keeps the span, and one line says so.
 */
export type ShouldExport = 'llm' | ((span: SpanLike) => boolean);

export const shouldExportCheck: Check = [
  "'llm' or a function",
  (value) => value === 'llm' || typeof value === 'function',
];

export function isExported(span: SpanLike, shouldExport: ShouldExport | undefined): boolean {
  if (shouldExport === undefined) return true;
  if (shouldExport === 'llm') return isModelWork(span);
  // Where the function has thrown, `guard` has told it.
  const answer: { readonly value: unknown } | undefined = guard('shouldExport', () => ({ value: shouldExport(span) }));
  if (answer === undefined || typeof answer.value === 'boolean') return answer?.value !== false;
  ignoreRejection(answer.value);
  diagnostics.warnOnce(
    'shouldExport answer',
    `shouldExport: expected true or false, at once, got ${shown(answer.value)}; the span is kept.`,
  );
  return true;
}

/** The first words of attributes that only work with models has. */
const NAMESPACES: ReadonlySet<string> = new Set([
  'ai',
  'gen_ai',
  'langfuse',
  'langsmith',
  'llm',
  'mcp',
  'openinference',
  'runspan',
  'traceloop',
]);

/** OpenInference's, of a name space that it shares with others. */
const INPUT = 'input.value';

/** Instrumentations of models and of frameworks around them; with a hyphen or slash at the end, the beginning of their names. */
const SCOPES: ReadonlySet<string> = new Set(['ai', 'gen_ai', 'langfuse-sdk', 'langsmith']);
const SCOPE_PREFIXES: readonly string[] = [
  '@ai-sdk/',
  '@arizeai/openinference-',
  '@langfuse/',
  '@opentelemetry/instrumentation-openai',
  '@traceloop/',
];

function isModelWork({ attributes, instrumentationScope, instrumentationLibrary }: SpanLike): boolean {
  const scope = (instrumentationScope ?? instrumentationLibrary)?.name ?? '';
  if (SCOPES.has(scope) || SCOPE_PREFIXES.some((prefix) => scope.startsWith(prefix))) return true;
  for (const key in attributes) {
    if (key === INPUT || NAMESPACES.has(key.slice(0, Math.max(0, key.indexOf('.'))))) return true;
  }
  return false;
}
