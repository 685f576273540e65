// What the local model says: it repeats the question, so that an answer can be told from what was asked.

export function wordsOf(text) {
  return String(text).split(/\s+/).filter(Boolean);
}

/** A token is a word. */
export function tokensOf(contents) {
  return contents.reduce((sum, content) => sum + wordsOf(textOf(content)).length, 0);
}

/** The text of a message: of its parts, where it has some. */
export function textOf(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? '' : JSON.stringify(content);
  return content.map((part) => part.text ?? '').join(' ');
}

/** To the last message; tools that have answered are repeated together. With a schema it is JSON of that shape. */
export function answerTo(messages, schema) {
  const answered = messages.filter(({ role }) => role === 'tool').map(({ content }) => textOf(content));
  const question = textOf(messages.findLast(({ role }) => role === 'user')?.content);
  if (schema !== undefined) return JSON.stringify(sampleOf(schema, question));
  return answered.length > 0 ? `The tools say: ${answered.join(', ')}` : `You said: ${question}`;
}

/** A value of the shape of a JSON schema. */
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
