import { Worker } from 'node:worker_threads';
import { type ErrorCode, RunspanError } from '../../../../base/errors.ts';
import { messageOf } from '../../../../base/text.ts';
import { parseExact } from '../../../../payload/fields.ts';
import type { PriceOptions } from '../../../domain/cost/prices.ts';
import { StoreError } from '../../store.ts';
import type { TenantChange } from '../../subscribers.ts';
import type { StoreOwner } from '../file/file.ts';
import type { Retention } from '../retention.ts';

/** The `workerData` of a store's worker threads. `storeExit` contains a number of `EXIT`. */
export interface StoreThread {
  readonly storeExit: Int32Array;
}

/** From `requested` on, a thread executes no more calls. `done` means that it has ended. */
export const EXIT = { none: 0, requested: 1, done: 2 };
/** Maximum time that the end of the process waits for a thread, in milliseconds. */
const EXIT_WAIT_MS = 5000;

export interface ConnectionOptions {
  /** Path of the file, without symbolic links. */
  readonly path: string;
  /** Options for the writer thread. Undefined in a reader thread. */
  readonly write?: Retention & PriceOptions & { readonly owner: StoreOwner };
  /**
   * For a reader thread that executes slow queries: a shared number. When the number is 1, a query ends at its next check.
   * Undefined in the reader thread for quick queries, in which a query ends at its first check after 100 ms.
   */
  readonly ended?: Int32Array;
  /** Options for a thread that only calculates the costs of stored runs, and does not lock the store. */
  readonly reprice?: PriceOptions;
  /** Options for a thread that changes only keys, and does not lock the store. */
  readonly keys?: { readonly create: boolean };
  /** Whether the thread changes only the retention time, and does not lock the store. */
  readonly retention?: true;
}

/** Functions that run in a worker thread. */
export interface Thread<Calls> {
  call<Name extends keyof Calls & string>(
    name: Name,
    ...args: ArgumentsOf<Calls[Name]>
  ): Promise<ResultOf<Calls[Name]>>;
  /** Whether every later call rejects, because the thread was closed or has failed. */
  readonly hasEnded: boolean;
  /** Ends the thread. Resolves once all earlier calls have returned and the thread has ended. */
  close(): Promise<void>;
}

export type ArgumentsOf<Call> = Call extends (...args: infer Args) => unknown ? Args : never;
export type ResultOf<Call> = Call extends (...args: never[]) => infer Result ? Awaited<Result> : never;

export type Request = { readonly id: number; readonly name: string; readonly args: readonly unknown[] } | 'close';

/** A message from a thread. Instead of a value, it may contain JSON text. A change is sent before the response to the call that caused the change. */
export type Response =
  | { readonly id: number; readonly value?: unknown; readonly json?: string; readonly error?: SentError }
  | { readonly change: TenantChange };

/** An error as it is sent to another thread. Messages between threads do not preserve an error's class. */
interface SentError {
  readonly message: string;
  readonly code?: ErrorCode;
  readonly reason?: StoreError['reason'];
  readonly retryAfterS?: number | undefined;
}

export function sentError(error: unknown): SentError {
  const message = error instanceof Error ? error.message : messageOf(error);
  if (error instanceof StoreError) return { message, reason: error.reason, retryAfterS: error.retryAfterS };
  return error instanceof RunspanError ? { message, code: error.code } : { message };
}

function receivedError({ message, code, reason, retryAfterS }: SentError): Error {
  if (reason !== undefined) return new StoreError(reason, message, retryAfterS);
  switch (code) {
    case undefined:
      return new Error(message);
    case 'RUNSPAN_INVALID_OPTION':
      return new RunspanError('RUNSPAN_INVALID_OPTION', message);
    case 'RUNSPAN_SQLITE_MISSING':
      return new RunspanError('RUNSPAN_SQLITE_MISSING', message);
    case 'RUNSPAN_STORE_IN_USE':
      return new RunspanError('RUNSPAN_STORE_IN_USE', message);
    case 'RUNSPAN_STORE_INVALID':
      return new RunspanError('RUNSPAN_STORE_INVALID', message);
    default:
      return new RunspanError('RUNSPAN_STORE_FAILED', message);
  }
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

function startStoreWorker({ ended }: ConnectionOptions): Worker {
  // By default, Node's built-in SQLite prints a warning in each thread.
  const execArgv = ['--disable-warning=ExperimentalWarning'];
  const workerData: StoreThread = { storeExit: new Int32Array(new SharedArrayBuffer(4)) };
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData, execArgv });
  const end = (): void => endAtExit(worker, workerData.storeExit, ended);
  if (endings.size === 0) process.on('exit', endAll);
  endings.add(end);
  return worker.once('exit', () => {
    endings.delete(end);
    if (endings.size === 0) process.off('exit', endAll);
  });
}

/** Functions that end the running threads. A store starts its writer first, and ends it last: see `SqliteStore.close`. */
const endings = new Set<() => void>();

/** Called while the process exits. The SQLite package aborts the process if Node stops a thread that executes a statement. */
function endAll(): void {
  for (const end of [...endings].reverse()) end();
}

/** Waits until the thread has closed its connection and has ended. The query of a slow reader ends early. */
function endAtExit(worker: Worker, exit: Int32Array, ended: Int32Array | undefined): void {
  if (ended !== undefined) Atomics.store(ended, 0, 1);
  Atomics.compareExchange(exit, 0, EXIT.none, EXIT.requested);
  worker.postMessage('close' satisfies Request);
  Atomics.wait(exit, 0, EXIT.requested, EXIT_WAIT_MS);
}

/** A worker thread with a connection to the file. The thread keeps the process alive only while a call is pending. */
export class WorkerThread<Calls> implements Thread<Calls> {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #onChange: (change: TenantChange) => void;
  readonly #onEnd: (problem: string) => void;
  #lastId = 0;
  #isOpen = false;
  #ended: Error | undefined;
  #closing: Promise<void> | undefined;

  /** Starts a thread. Calls `onEnd` if the thread ends without a call to `close`. Pending calls reject in any case. */
  static async open<Calls>(
    options: ConnectionOptions,
    onChange: (change: TenantChange) => void = () => {},
    onEnd: (problem: string) => void = () => {},
    startWorker: (options: ConnectionOptions) => Worker = startStoreWorker,
  ): Promise<WorkerThread<Calls>> {
    const thread = new WorkerThread<Calls>(startWorker(options), onChange, onEnd);
    await thread.#send('open', [options]);
    thread.#isOpen = true;
    return thread;
  }

  private constructor(worker: Worker, onChange: (change: TenantChange) => void, onEnd: (problem: string) => void) {
    this.#onChange = onChange;
    this.#onEnd = onEnd;
    this.#worker = worker;
    this.#worker.on('message', (response: Response) => this.#receive(response));
    this.#worker.on('error', (error) => this.#end(messageOf(error)));
    this.#worker.on('exit', (code) => this.#end(`it ended with code ${code}`));
  }

  call<Name extends keyof Calls & string>(
    name: Name,
    ...args: ArgumentsOf<Calls[Name]>
  ): Promise<ResultOf<Calls[Name]>> {
    return this.#send(name, args) as Promise<ResultOf<Calls[Name]>>;
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  #send(name: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(this.#ended);
        return;
      }
      this.#lastId += 1;
      this.#pending.set(this.#lastId, { resolve, reject });
      this.#worker.ref();
      this.#post({ id: this.#lastId, name, args });
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#ended !== undefined) return;
    const exit = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()));
    this.#worker.ref();
    this.#post('close');
    await exit;
  }

  #post(request: Request): void {
    this.#worker.postMessage(request);
  }

  #receive(response: Response): void {
    if ('change' in response) {
      this.#onChange(response.change);
      return;
    }
    const { id, value, json, error } = response;
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(json === undefined ? value : parseExact(json));
    else pending?.reject(receivedError(error));
    if (this.#pending.size === 0 && this.#closing === undefined) this.#worker.unref();
  }

  #end(problem: string): void {
    if (this.#ended !== undefined) return;
    const reason = this.#closing === undefined ? `its thread failed (${problem})` : 'it is closed';
    this.#ended = new RunspanError('RUNSPAN_STORE_FAILED', `The store cannot be used: ${reason}`);
    for (const { reject } of this.#pending.values()) reject(this.#ended);
    this.#pending.clear();
    if (this.#closing === undefined && this.#isOpen) this.#onEnd(problem);
  }
}
