import type { DemoContext } from './context.ts';

interface State {
  readonly values: { readonly messages: readonly { readonly content: unknown }[] };
}

/** A conversation of one turn with the routes of the chat application. */
export async function chatRoutes({ chat, check }: DemoContext): Promise<void> {
  const thread = '/api/threads/tea';
  const call = (method: string, path: string, body?: object): Promise<Response> =>
    chat(
      new Request(`http://localhost${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  const read = async <Body>(...request: Parameters<typeof call>): Promise<Body> =>
    (await (await call(...request)).json()) as Body;
  check('a new thread has no state', (await call('GET', `${thread}/state`)).status, 404);
  await call('POST', `${thread}/state`, { values: { messages: [] } });
  const input = { messages: [{ type: 'human', content: 'Tea?' }] };
  const start = { id: 1, method: 'run.start', params: { assistant_id: 'agent', input } };
  const { result } = await read<{ result?: { run_id?: unknown } }>('POST', `${thread}/commands`, start);
  check('a command returns the id of its run', typeof result?.run_id, 'string');
  const stream = await call('POST', `${thread}/stream`, { channels: ['lifecycle', 'messages'] });
  check('the stream has the run until its end', await isCompleted(stream));

  const { values } = await read<State>('GET', `${thread}/state`);
  check('the state begins with the question', values.messages[0]?.content, 'Tea?');
  check('and ends with the answer', JSON.stringify(values.messages.at(-1)).includes('You asked: Tea?'));
  const threads = await read<readonly { title: string }[]>('GET', '/api/threads');
  check('the thread is listed', [threads.length, threads[0]?.title], [1, 'Tea?']);
  const [latest] = await read<readonly State[]>('POST', `${thread}/history`, { limit: 1 });
  check('the history begins with the latest state', latest?.values, values);
  check('the thread is deleted', (await call('DELETE', thread)).status, 204);
  check('its state is deleted, too', (await call('GET', `${thread}/state`)).status, 404);
}

/** The end of the run itself, not that of a step or a subagent. */
const ROOT_END = /"namespace":\[\],[^\n]{0,300}"event":"(completed|failed)"/;

/** Reads a stream, which stays open after the run, until the run has completed. */
async function isCompleted({ body }: Response): Promise<boolean> {
  let text = '';
  for await (const chunk of (body ?? new ReadableStream<never>()).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (ROOT_END.test(text)) break;
  }
  return ROOT_END.exec(text)?.[1] === 'completed';
}
