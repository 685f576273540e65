// Creates the local model's answers, which repeat the question so that tests can match answers with questions.

export function wordsOf(text) {
  return String(text).split(/\s+/).filter(Boolean);
}

/** Each word counts as a token. */
export function tokensOf(contents) {
  return contents.reduce((sum, content) => sum + wordsOf(textOf(content)).length, 0);
}

/** Returns a message's text, joined from its parts if it has several. */
export function textOf(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? '' : JSON.stringify(content);
  return content.map((part) => part.text ?? '').join(' ');
}

/** Answers the last message. Repeats the answers of all tools together. With a schema, returns JSON that matches it. */
export function answerTo(messages, schema) {
  const answered = messages.filter(({ role }) => role === 'tool').map(({ content }) => textOf(content));
  const question = textOf(messages.findLast(({ role }) => role === 'user')?.content);
  if (schema !== undefined) return JSON.stringify(sampleOf(schema, question));
  return answered.length > 0 ? `The tools say: ${answered.join(', ')}` : `You said: ${question}`;
}

export function sampleOf(schema = {}, text) {
  if (schema.enum !== undefined) return schema.enum[0];
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, of]) => [name, sampleOf(of, text)]),
      );
    case 'array':
      return [sampleOf(schema.items, text)];
    case 'number':
    case 'integer':
      return wordsOf(text).length;
    case 'boolean':
      return true;
    default:
      return text;
  }
}
