/** An event of the protocol, as far as tests look at it. */
export interface SeenEvent {
  readonly event_id: string;
  readonly seq: number;
  readonly method: string;
  readonly params: {
    readonly namespace: readonly string[];
    readonly run_id: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

/** What the protocol answers to a command. */
interface Answer {
  readonly type: string;
  readonly message?: string;
  readonly result: { readonly run_id: string };
}

interface ToldState {
  readonly checkpoint: { readonly checkpoint_id: string };
}

/** Talks to a chat, in as few words as tests need. */
export class ChatClient {
  readonly #url: string;
  readonly #send: typeof fetch;

  constructor(url: string, send: typeof fetch = fetch) {
    this.#url = url;
    this.#send = send;
  }

  async start(thread: string, text: string, multitaskStrategy?: string): Promise<Answer> {
    const params = { input: { messages: [{ role: 'user', content: text }] }, multitaskStrategy };
    return (
      await this.#post(`/threads/${thread}/commands`, { id: 1, method: 'run.start', params })
    ).json() as Promise<Answer>;
  }

  async cancel(thread: string, run: string): Promise<number> {
    return (await this.#post(`/threads/${thread}/runs/${run}/cancel`, {})).status;
  }

  async state(
    thread: string,
  ): Promise<{ readonly values: { readonly messages: readonly { readonly type: string }[] } }> {
    return this.get(`/threads/${thread}/state`);
  }

  async get<Body>(path: string): Promise<Body> {
    return (await this.#send(`${this.#url}${path}`)).json() as Promise<Body>;
  }

  /** The history, page by page. */
  async history(thread: string, limit: number): Promise<unknown[]> {
    const states: ToldState[] = [];
    for (;;) {
      const before = states.at(-1)?.checkpoint.checkpoint_id;
      const page = (await (await this.#post(`/threads/${thread}/history`, { limit, before })).json()) as ToldState[];
      states.push(...page);
      if (page.length < limit) return states;
    }
  }

  /** The events of a thread, from the first on, up to one that is wanted. */
  async events(thread: string, isLast: (event: SeenEvent) => boolean): Promise<SeenEvent[]> {
    const seen: SeenEvent[] = [];
    for await (const event of this.#stream(thread)) {
      seen.push(event);
      if (isLast(event)) return seen;
    }
    throw new Error(`the stream has ended after ${seen.length} events`);
  }

  async *#stream(thread: string): AsyncGenerator<SeenEvent> {
    const stop = new AbortController();
    const { body } = await this.#post(`/threads/${thread}/stream`, {}, stop.signal);
    let text = '';
    try {
      for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
        text += chunk;
        const frames = text.split('\n\n');
        text = frames.pop() ?? '';
        for (const frame of frames) {
          const data = /^data: (.*)$/m.exec(frame)?.[1];
          if (data !== undefined) yield JSON.parse(data);
        }
      }
    } finally {
      stop.abort();
    }
  }

  #post(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    return this.#send(`${this.#url}${path}`, signal === undefined ? init : { ...init, signal });
  }
}

/** Whether an event tells of the end of a run, of all of it and not of a part. */
export function isEndOf(run: string): (event: SeenEvent) => boolean {
  return (event) => event.params.run_id === run && endOf(event) !== undefined;
}

export function endOf({ method, params }: SeenEvent): string | undefined {
  const isEnd = method === 'lifecycle' && params.namespace.length === 0 && params.data.event !== 'running';
  return isEnd ? String(params.data.event) : undefined;
}
