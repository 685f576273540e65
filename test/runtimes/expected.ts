import type { StoredRun } from '#src/receiver.ts';

export const RESULTS: Readonly<Record<string, string>> = {
  hello: 'Hello, runtime!',
  nested: '1',
  explicit: '1',
  generated: 'one two',
  streamed: 'one two',
  attached: '36',
  openai: 'It is raining. It is raining.',
};

const MODEL_CALL = 'openai.chat.completions: "It is raining.", 29 tokens';

/** The lines of `outlineOf` for each call. `nested` needs an `AsyncLocalStorage`. */
export const OUTLINES: Readonly<Record<string, readonly string[]>> = {
  hello: ['hello: "Hello, runtime!"'],
  nested: ['nested: 1', 'nested > search: ["Why?"]', 'nested > rank: 1'],
  explicit: ['explicit: 1', 'explicit > search: ["Why?"]', 'explicit > rank: 1'],
  generated: ['generated: ["one ","two"]'],
  streamed: ['streamed: ["one ","two"]'],
  attached: ['attached: 36, note of 5 bytes'],
  openai: [MODEL_CALL, MODEL_CALL],
};

/** Returns a line for each run: its parent, name and outputs. */
export function outlineOf(runs: readonly StoredRun[]): string[] {
  const names = new Map(runs.map(({ id, name }) => [id, name]));
  return runs.map(({ name, parent_run_id: parent, outputs = {}, attachments = [], end_time: end }) => {
    const {
      outputs: value,
      choices,
      usage,
    } = outputs as {
      outputs?: unknown;
      choices?: { message: { content: string } }[];
      usage?: { total_tokens: number };
    };
    const shown = JSON.stringify(value ?? choices?.[0]?.message.content);
    const path = parent ? `${names.get(parent)} > ${name}` : name;
    const files = attachments.map((file) => `, ${file.name} of ${file.size} bytes`).join('');
    return `${path}: ${shown}${files}${usage ? `, ${usage.total_tokens} tokens` : ''}${end ? '' : ', open'}`;
  });
}
