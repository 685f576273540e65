import { Worker } from 'node:worker_threads';
import { type ErrorCode, RunspanError } from '../../base/errors.ts';
import { messageOf } from '../../base/text.ts';
import { type Detail, HttpError } from '../http-error.ts';
import type { DeskOptions } from './sqlite-desk.ts';
import type { StoreChange } from './store.ts';

/** To whom a store passes on what is asked of it. */
export interface Link<Calls> {
  call<Name extends keyof Calls & string>(
    name: Name,
    ...args: ArgumentsOf<Calls[Name]>
  ): Promise<AnswerOf<Calls[Name]>>;
  /** Ends after what was asked before has been answered. */
  close(): Promise<void>;
}

type ArgumentsOf<Call> = Call extends (...args: infer Args) => unknown ? Args : never;
type AnswerOf<Call> = Call extends (...args: never[]) => infer Answer ? Awaited<Answer> : never;

/** What goes to the thread: a call, or that it shall end. */
export type Asked = { readonly id: number; readonly name: string; readonly args: readonly unknown[] } | 'close';

/** What comes back: that the file is open, answers, and changes, each before the answer to what has brought it. */
export type Told =
  | { readonly kind: 'open' }
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly failure?: Failure }
  | { readonly kind: 'change'; readonly change: StoreChange }
  | { readonly kind: 'failure'; readonly failure: Failure };

/** An error on its way between threads, which carry no classes. */
export interface Failure {
  readonly message: string;
  readonly code?: ErrorCode;
  readonly refusal?: { readonly status: number; readonly detail: Detail };
}

export function failureOf(error: unknown): Failure {
  const message = error instanceof Error ? error.message : messageOf(error);
  if (error instanceof HttpError) return { message, refusal: { status: error.status, detail: error.detail } };
  return error instanceof RunspanError ? { message, code: error.code } : { message };
}

function errorOf({ message, code, refusal }: Failure): Error {
  if (refusal !== undefined) return new HttpError(refusal.status, refusal.detail);
  switch (code) {
    case undefined:
      return new Error(message);
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

interface WaitingAnswer {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

type StartThread = (options: DeskOptions) => Worker;

const startOwn: StartThread = (options) =>
  new Worker(new URL('./sqlite-worker.js', import.meta.url), {
    workerData: options,
    // Node's own SQLite says in each thread that it is an experiment. Nothing else is loaded there.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });

/** A thread that has the file of a store open. It keeps the process alive only while it is asked something. */
export class WorkerLink<Calls> implements Link<Calls> {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, WaitingAnswer>();
  readonly #onChange: (change: StoreChange) => void;
  readonly #onEnd: (problem: string) => void;
  #lastId = 0;
  #opening: WaitingAnswer | undefined;
  /** Why it can be asked nothing any more. */
  #ended: Error | undefined;
  #closing: Promise<void> | undefined;

  /** `onEnd` is called when the thread ends without having been told to. */
  static async open<Calls>(
    options: DeskOptions,
    onChange: (change: StoreChange) => void,
    onEnd: (problem: string) => void,
    startThread: StartThread = startOwn,
  ): Promise<WorkerLink<Calls>> {
    const link = new WorkerLink<Calls>(startThread(options), onChange, onEnd);
    await new Promise((resolve, reject) => {
      link.#opening = { resolve, reject };
    });
    link.#opening = undefined;
    link.#rest();
    return link;
  }

  private constructor(worker: Worker, onChange: (change: StoreChange) => void, onEnd: (problem: string) => void) {
    this.#onChange = onChange;
    this.#onEnd = onEnd;
    this.#worker = worker;
    this.#worker.on('message', (told: Told) => this.#hear(told));
    this.#worker.on('error', (error) => this.#end(messageOf(error)));
    this.#worker.on('exit', (code) => this.#end(`it ended with code ${code}`));
  }

  call<Name extends keyof Calls & string>(
    name: Name,
    ...args: ArgumentsOf<Calls[Name]>
  ): Promise<AnswerOf<Calls[Name]>> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(this.#ended);
        return;
      }
      this.#lastId += 1;
      this.#waiting.set(this.#lastId, { resolve: resolve as (value: unknown) => void, reject });
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
    const gone = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()));
    this.#worker.ref();
    this.#post('close');
    await gone;
  }

  #post(asked: Asked): void {
    this.#worker.postMessage(asked);
  }

  #hear(told: Told): void {
    if (told.kind === 'open') this.#opening?.resolve(undefined);
    else if (told.kind === 'failure') this.#opening?.reject(errorOf(told.failure));
    else if (told.kind === 'change') this.#onChange(told.change);
    else {
      const waiting = this.#waiting.get(told.id);
      this.#waiting.delete(told.id);
      if (told.failure === undefined) waiting?.resolve(told.value);
      else waiting?.reject(errorOf(told.failure));
      this.#rest();
    }
  }

  #rest(): void {
    if (this.#waiting.size === 0 && this.#closing === undefined) this.#worker.unref();
  }

  #end(problem: string): void {
    if (this.#ended !== undefined) return;
    const why =
      this.#closing === undefined ? `its thread has failed (${problem}); restart the program` : 'it is closed';
    this.#ended = new RunspanError('RUNSPAN_STORE_FAILED', `The store cannot be used: ${why}`);
    this.#opening?.reject(this.#ended);
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
    if (this.#closing === undefined && this.#opening === undefined) this.#onEnd(problem);
  }
}
