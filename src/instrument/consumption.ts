import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { applyInContext } from '../run/context.ts';
import type { Run } from '../run/run.ts';
import { abandonment, type Watched } from './abandonment.ts';
import { Chunks } from './chunks.ts';
import type { Method } from './own-method.ts';
import type { Plan } from './plan.ts';
import type { Reading } from './reading.ts';

/** The reading of one result to its end, which is the end of its run. No method throws, but for what a step throws. */
export class Consumption implements Reading, Watched {
  wasTouched = true;
  isStepping = false;
  readonly #run: Run;
  readonly #chunks: Chunks;
  #isUnseen = false;

  constructor(run: Run, plan: Plan) {
    this.#run = run;
    this.#chunks = new Chunks(plan, run);
  }

  get idleMaxMs(): number {
    return this.#run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs;
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.wasTouched = true;
    this.isStepping = true;
    try {
      return applyInContext(this.#run.context, method, self, args);
    } finally {
      this.isStepping = false;
    }
  }

  took(chunk: unknown): void {
    if (!this.#run.isOpen) return;
    this.wasTouched = true;
    if (this.#chunks.count === 0) this.#run.event('new_token');
    this.#chunks.push(chunk);
  }

  end(): void {
    const isRecorded = this.#chunks.count > 0 || !this.#isUnseen;
    this.#close(isRecorded, () => this.#run.end());
  }

  fail(thrown: unknown): void {
    this.#close(this.#chunks.count > 0, () => this.#run.fail(thrown));
  }

  cancel(): void {
    this.#close(this.#chunks.count > 0, () => this.#run.cancel());
  }

  abandon(reason: string): void {
    this.#close(this.#chunks.count > 0, () => this.#run.interrupt(reason));
  }

  watch(object: object): void {
    if (this.#run.isOpen) abandonment.watch(object, this);
  }

  leaveUnseen(): void {
    this.#isUnseen = true;
    abandonment.unwatch(this);
  }

  #close(isRecorded: boolean, end: () => void): void {
    abandonment.unwatch(this);
    if (!this.#run.isOpen) return;
    if (isRecorded) guard('traceable', () => this.#chunks.record());
    this.#chunks.release();
    end();
  }
}
