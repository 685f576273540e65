import { vi } from 'vitest';

type Listener = (event: { data: string }) => void;

export class FakeStream {
  static readonly CLOSED = 2;
  static last: FakeStream;
  readyState = 0;
  readonly #listeners: [string, Listener][] = [];

  constructor() {
    FakeStream.last = this;
  }

  addEventListener(name: string, listener: Listener): void {
    this.#listeners.push([name, listener]);
  }

  emit(name: string, data?: unknown): void {
    for (const [one, listener] of this.#listeners) if (one === name) listener({ data: JSON.stringify(data) });
  }

  /** Closes the stream as a browser does after a status other than 200. */
  refuse(): void {
    this.close();
    this.emit('error');
  }

  close(): void {
    this.readyState = FakeStream.CLOSED;
  }
}

/** Stubs the browser's globals. The receiver gives the returned answer. */
export function fakeBrowser() {
  const answers = { status: 200, body: (_url: URL): unknown => ({ items: [] }) };
  vi.stubGlobal('document', { hidden: false });
  vi.stubGlobal('EventSource', FakeStream);
  vi.stubGlobal('fetch', async (path: string) => {
    const body = await answers.body(new URL(path, 'http://receiver'));
    return new Response(JSON.stringify(body), { status: answers.status });
  });
  return answers;
}
