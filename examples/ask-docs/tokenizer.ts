import { trace } from '@opentelemetry/api';

/** Words that are in most questions and say nothing of what is asked. */
const STOP_WORDS = new Set(
  `a an and any are as at be between by can could do does for from has have how i if in into is it its many me much my
   not of on or should so than that the their them there they this to use using was we what when where which who why
   will with would you your`.split(/\s+/),
);

const tracer = trace.getTracer('ask-docs/tokenizer');

/**
 * The tokenizer knows nothing of runspan: it makes spans, as a library would that is instrumented with OpenTelemetry.
 */
export function tokenizeQuestion(question: string): string[] {
  return tracer.startActiveSpan('tokenize question', (span) => {
    const tokens = tokensOf(question);
    span.setAttributes({
      'openinference.span.kind': 'TOOL',
      'input.value': question,
      'output.value': JSON.stringify({ tokens }),
      'output.mime_type': 'application/json',
    });
    span.end();
    return tokens;
  });
}

/** One span for all of them: one each would say little and cost much. */
export function tokenizeTexts(texts: readonly string[]): string[][] {
  return tracer.startActiveSpan('tokenize paragraphs', (span) => {
    const tokens = texts.map(tokensOf);
    span.setAttributes({
      'openinference.span.kind': 'TOOL',
      'tokenizer.texts': texts.length,
      'tokenizer.tokens': tokens.reduce((sum, { length }) => sum + length, 0),
    });
    span.end();
    return tokens;
  });
}

/** Lower-case words, without stop words and the -s of plurals. */
export function tokensOf(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
    .filter((word) => !STOP_WORDS.has(word))
    .map((word) => (/[^s]s$/.test(word) && word.length > 3 ? word.slice(0, -1) : word));
}
