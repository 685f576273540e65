import { createHash } from 'node:crypto';
import { createClient } from '@redis/client';
import { placeOf, unusable } from './store-error.ts';

type Client = ReturnType<typeof connectionTo>;

const CONNECT_MS = 5_000;
/** A command that has no answer for so long fails, with the connection. The checks come more often, so that silence means trouble. */
const SILENCE_MS = 10_000;
const CHECK_MS = 3_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;

/** Two connections to Redis: one for scripts, one on which a channel is heard. Both are made anew when they break. */
export class RedisConnection {
  readonly #commands: Client;
  readonly #subscriber: Client;
  /** By their text, which Redis has to be given once only. */
  readonly #digests = new Map<string, string>();

  /** Rejects when the first connection fails. `onGap` is called when there has been none for a while, and messages may have been missed. */
  static async open(
    url: string,
    channel: string,
    onMessage: (text: string) => void,
    onGap: () => void,
  ): Promise<RedisConnection> {
    let connection: RedisConnection | undefined;
    try {
      connection = new RedisConnection(connectionTo(url), connectionTo(url));
      await connection.#connect(channel, onMessage, onGap);
      return connection;
    } catch (error) {
      connection?.close();
      throw unusable('Redis', placeOf(url), error);
    }
  }

  private constructor(commands: Client, subscriber: Client) {
    this.#commands = commands;
    this.#subscriber = subscriber;
    // What is wrong is said by the commands that fail.
    for (const client of [commands, subscriber]) client.on('error', () => {});
  }

  /** Rejects at once while there is no connection. */
  async run(script: string, keys: readonly string[], values: readonly (string | number)[] = []): Promise<unknown> {
    const options = { keys: [...keys], arguments: values.map(String) };
    try {
      return await this.#commands.evalSha(this.#digestOf(script), options);
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return this.#commands.eval(script, options);
    }
  }

  async field(key: string, field: string): Promise<string | undefined> {
    return (await this.#commands.hGet(key, field)) ?? undefined;
  }

  close(): void {
    for (const client of [this.#commands, this.#subscriber]) if (client.isOpen) client.destroy();
  }

  async #connect(channel: string, onMessage: (text: string) => void, onGap: () => void): Promise<void> {
    await Promise.all([firstConnection(this.#commands), firstConnection(this.#subscriber)]);
    await this.#subscriber.subscribe(channel, onMessage);
    this.#subscriber.on('ready', onGap);
  }

  #digestOf(script: string): string {
    const digest = this.#digests.get(script) ?? createHash('sha1').update(script).digest('hex');
    this.#digests.set(script, digest);
    return digest;
  }
}

// The types of what it gives are those of the options.
function connectionTo(url: string) {
  return createClient({
    url,
    socket: {
      connectTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      reconnectStrategy: (retries) => Math.min(RETRY_MS_MIN * 2 ** retries, RETRY_MS_MAX),
    },
    pingInterval: CHECK_MS,
    disableOfflineQueue: true,
    name: 'runspan-chat',
  });
}

/** The client would try on and on: what is wrong at the start is to be told. */
async function firstConnection(client: Client): Promise<void> {
  const failure = new Promise<never>((_resolve, reject) => client.once('error', reject));
  await Promise.race([client.connect(), failure]);
}
