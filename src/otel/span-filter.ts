import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { shown } from '../base/text.ts';
import type { Check } from '../config/checker.ts';
import type { RowIndex } from './mapping/row-index.ts';
import { scopeOf } from './mapping/span-identity.ts';
import type { SpanLike } from './span-like.ts';

/**
 * Selects the spans that become runs. `'llm'` selects spans that are related to model calls, and `'all'` selects all
 * spans. A function must return a boolean synchronously. If the function throws or returns another value, the span is
 * kept and one warning is logged.
 */
export type ShouldExport = 'llm' | 'all' | ((span: SpanLike) => boolean);

export const shouldExportCheck: Check = [
  "'llm', 'all' or a function",
  (value) => value === 'llm' || value === 'all' || typeof value === 'function',
];

export function isExported(span: SpanLike, shouldExport: ShouldExport, index: RowIndex): boolean {
  if (shouldExport === 'all') return true;
  if (shouldExport === 'llm') return isModelWork(span) || index.hasOwnType(span.attributes);
  // If the function threw, `answer` is undefined and `guard` has logged the error.
  const answer: { readonly value: unknown } | undefined = guard('shouldExport', () => ({ value: shouldExport(span) }));
  if (answer === undefined || typeof answer.value === 'boolean') return answer?.value !== false;
  ignoreRejection(answer.value);
  diagnostics.warnOnce(
    'shouldExport answer',
    `shouldExport: expected true or false synchronously, got ${shown(answer.value)}; the span is kept.`,
  );
  return true;
}

/** Spans with an attribute whose name starts with one of these words are related to model calls. */
const NAMESPACES: ReadonlySet<string> = new Set([
  ...['ai', 'gen_ai', 'langfuse', 'langsmith', 'llm', 'mcp', 'openinference', 'runspan', 'traceloop'],
]);

const INPUT = 'input.value';

/**
 * The instrumentation scopes whose spans `shouldExport: 'llm'` selects, whatever their attributes are. A name that ends
 * with `*` stands for all scopes that begin with the rest.
 */
export const LLM_SCOPES: readonly string[] = [
  'ai',
  'gen_ai',
  'langfuse-sdk',
  'langsmith',
  '@ai-sdk/*',
  '@arizeai/openinference-*',
  '@langfuse/*',
  '@opentelemetry/instrumentation-openai*',
  '@traceloop/*',
];

const SCOPES: ReadonlySet<string> = new Set(LLM_SCOPES);
const SCOPE_PREFIXES = LLM_SCOPES.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));

function isModelWork(span: SpanLike): boolean {
  const scope = scopeOf(span)?.name ?? '';
  if (SCOPES.has(scope) || SCOPE_PREFIXES.some((prefix) => scope.startsWith(prefix))) return true;
  for (const key in span.attributes) {
    if (key === INPUT || NAMESPACES.has(key.slice(0, Math.max(0, key.indexOf('.'))))) return true;
  }
  return false;
}
