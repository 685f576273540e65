import { Client, type ClientConfig } from 'pg';
import { endOf } from './postgres-end.ts';

export interface PostgresListenerOptions {
  readonly config: ClientConfig;
  readonly channel: string;
  readonly onNotice: (payload: string) => void;
  /** Notices may have been missed: there was no connection for a while. */
  readonly onGap: () => void;
}

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
/** A connection whose other end has vanished says nothing, and neither does one on which nothing happens. */
const CHECK_MS = 10_000;

/** Hears what is notified on a channel, on a connection of its own, which is made anew when it breaks. */
export class PostgresListener {
  readonly #options: PostgresListenerOptions;
  #client: Client | undefined;
  #isOpen = true;
  #retryMs = RETRY_MS_MIN;
  #retry: NodeJS.Timeout | undefined;
  readonly #check: NodeJS.Timeout;

  /** Rejects when the first connection fails. */
  static async open(options: PostgresListenerOptions): Promise<PostgresListener> {
    const listener = new PostgresListener(options);
    try {
      await listener.#connect();
      return listener;
    } catch (error) {
      await listener.close();
      throw error;
    }
  }

  private constructor(options: PostgresListenerOptions) {
    this.#options = options;
    this.#check = setInterval(() => this.#client?.query('SELECT 1').catch(() => this.#lose(this.#client)), CHECK_MS);
    this.#check.unref();
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    clearInterval(this.#check);
    clearTimeout(this.#retry);
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) await endOf(client);
  }

  async #connect(): Promise<void> {
    const { config, channel, onNotice } = this.#options;
    const client = new Client(config);
    // What is wrong is said by the end that follows.
    client.on('error', () => {});
    client.on('notification', ({ payload = '' }) => onNotice(payload));
    try {
      await client.connect();
      client.once('end', () => this.#lose(client));
      await client.query(`LISTEN ${channel}`);
    } catch (error) {
      client.end().catch(() => {});
      throw error;
    }
    if (!this.#isOpen) return client.end();
    this.#client = client;
    this.#retryMs = RETRY_MS_MIN;
  }

  #lose(client: Client | undefined): void {
    if (client === undefined || client !== this.#client) return;
    this.#client = undefined;
    client.end().catch(() => {});
    this.#connectLater();
  }

  #connectLater(): void {
    this.#retry = setTimeout(() => {
      this.#connect().then(
        () => this.#options.onGap(),
        () => this.#isOpen && this.#connectLater(),
      );
    }, this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
  }
}
