import { trace } from '@opentelemetry/api';

/** Words that occur in most questions and say nothing about the topic. */
const STOP_WORDS = new Set(
  `a an and any are as at be between by can could do does for from has have how i if in into is it its many me much my
   not of on or should so than that the their them there they this to use using was we what when where which who why
   will with would you your`.split(/\s+/),
);

const tracer = trace.getTracer('ask-docs/tokenizer');

/** Like a library instrumented with OpenTelemetry, the tokenizer creates spans and does not use runspan. */
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

/** Creates one span for all texts, because one span per text would be expensive and say little. */
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

/** Returns the words in lower case, without stop words and plural -s. */
export function tokensOf(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
    .filter((word) => !STOP_WORDS.has(word))
    .map((word) => (/[^s]s$/.test(word) && word.length > 3 ? word.slice(0, -1) : word));
}
