import { RedisConnection } from './redis-connection.ts';
import {
  APPEND,
  CANCEL,
  CLAIM,
  DELETE,
  END,
  LEASES_KEY,
  LOG_PREFIX,
  READ,
  RENEW,
  SESSION_PREFIX,
  TAKE_CUT,
  WAKE_CHANNEL,
} from './redis-scripts.ts';
import {
  type CutRun,
  type EventPage,
  type Lease,
  type NewEvent,
  type Place,
  SESSION_LIMITS,
  type SessionLimits,
  type SessionStore,
  WAITING_MAX,
  type Wake,
} from './session-store.ts';
import { headOf, storedEvent } from './stored-event.ts';
import { Wakers } from './wakers.ts';

type Entry = readonly [id: string, fields: readonly [string, head: string, string, body: string]];

/** Sessions that instances share through Redis, whose clock is the one for leases and for the first numbers. */
export class RedisSessions implements SessionStore {
  readonly #redis: RedisConnection;
  readonly #limits: SessionLimits;
  readonly #wakers: Wakers;
  /** Runs that have got their threads here, and have not lost them: they go on with them, should Redis forget that. */
  readonly #claimed = new Set<string>();

  static async open(url: string, limits: Partial<SessionLimits> = {}): Promise<RedisSessions> {
    const wakers = new Wakers();
    const redis = await RedisConnection.open(
      url,
      WAKE_CHANNEL,
      (message) => wakers.wake(message.slice(1), message.startsWith('e') ? 'events' : 'run'),
      () => wakers.wakeAll(),
    );
    return new RedisSessions(redis, { ...SESSION_LIMITS, ...limits }, wakers);
  }

  private constructor(redis: RedisConnection, limits: SessionLimits, wakers: Wakers) {
    this.#redis = redis;
    this.#limits = limits;
    this.#wakers = wakers;
  }

  get renewMs(): number {
    return this.#limits.renewMs;
  }

  async append(threadId: string, events: readonly NewEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { eventsMax, bytesMax, idleMs } = this.#limits;
    const values = events.flatMap((event) => [headOf(event), event.body]);
    await this.#redis.run(
      APPEND,
      [sessionOf(threadId), logOf(threadId)],
      [threadId, eventsMax, bytesMax, idleMs, ...values],
    );
  }

  async read(threadId: string, after: number, limit: number): Promise<EventPage> {
    const keys = [sessionOf(threadId), logOf(threadId)];
    const [dropped, entries] = (await this.#redis.run(READ, keys, [`${after + 1}-0`, limit])) as [string, Entry[]];
    const events = entries.map(([id, [, head, , body]]) => storedEvent(Number.parseInt(id, 10), head, body));
    return { events, droppedThrough: Number(dropped) };
  }

  async lastSeq(threadId: string): Promise<number> {
    return Number((await this.#redis.field(sessionOf(threadId), 'seq')) ?? 0);
  }

  watch(threadId: string, wake: Wake): () => void {
    return this.#wakers.add(threadId, wake);
  }

  async claim(threadId: string, runId: string, place?: Place): Promise<string | undefined> {
    const holder = (await this.#lease(CLAIM, threadId, runId, place ?? '', WAITING_MAX)) as string | null;
    if (holder === runId) this.#claimed.add(runId);
    return holder ?? undefined;
  }

  async renew(threadId: string, runId: string): Promise<Lease> {
    const lease = (await this.#lease(RENEW, threadId, runId, this.#wasClaimed(runId))) as Lease;
    if (lease === 'lost') this.#claimed.delete(runId);
    else if (lease !== 'waiting') this.#claimed.add(runId);
    return lease;
  }

  async end(threadId: string, runId: string, event: NewEvent): Promise<boolean> {
    const keys = [sessionOf(threadId), LEASES_KEY, logOf(threadId)];
    const values = [threadId, runId, this.#limits.idleMs, headOf(event), event.body, this.#wasClaimed(runId)];
    const isEnded = (await this.#redis.run(END, keys, values)) === 1;
    this.#claimed.delete(runId);
    return isEnded;
  }

  async activeRun(threadId: string): Promise<string | undefined> {
    return this.#redis.field(sessionOf(threadId), 'run');
  }

  async cancel(threadId: string, runId: string): Promise<boolean> {
    return (await this.#redis.run(CANCEL, [sessionOf(threadId)], [threadId, runId])) === 1;
  }

  async takeCutRuns(): Promise<readonly CutRun[]> {
    const { leaseMs, renewMs } = this.#limits;
    const cut = (await this.#redis.run(TAKE_CUT, [LEASES_KEY], [leaseMs, renewMs])) as string[];
    return cut.flatMap((threadId, at) => (at % 2 === 0 ? [{ threadId, runId: cut[at + 1] as string }] : []));
  }

  async delete(threadId: string): Promise<void> {
    const keys = [sessionOf(threadId), LEASES_KEY, logOf(threadId)];
    await this.#redis.run(DELETE, keys, [threadId, this.#limits.idleMs]);
  }

  async close(): Promise<void> {
    this.#redis.close();
  }

  #lease(script: string, threadId: string, runId: string, ...more: (string | number)[]): Promise<unknown> {
    const { leaseMs, idleMs } = this.#limits;
    const keys = [sessionOf(threadId), LEASES_KEY, logOf(threadId)];
    return this.#redis.run(script, keys, [threadId, runId, leaseMs, idleMs, ...more]);
  }

  #wasClaimed(runId: string): '0' | '1' {
    return this.#claimed.has(runId) ? '1' : '0';
  }
}

function sessionOf(threadId: string): string {
  return SESSION_PREFIX + threadId;
}

function logOf(threadId: string): string {
  return LOG_PREFIX + threadId;
}
