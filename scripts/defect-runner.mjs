import { fork } from 'node:child_process';
import { once } from 'node:events';

const LIFE_MAX_MS = 120_000;

/** Runs the tests of a copy, in a process that stays until one of them never ends. */
export class DefectRunner {
  #folder;
  #config;
  #child;

  constructor(folder, config) {
    this.#folder = folder;
    this.#config = config;
  }

  /** The outcome after a change of a file: `passed`, `failed`, `not loaded`, or `not ended`. */
  async outcomeOf(changed, tests) {
    this.#child ??= fork('scripts/defect-worker.mjs', [this.#config], {
      cwd: this.#folder,
      stdio: 'ignore',
      detached: true,
    });
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), LIFE_MAX_MS);
    try {
      this.#child.send({ changed, tests });
      const [outcome] = await once(this.#child, 'message', { signal: limit.signal });
      return outcome;
    } catch {
      this.stop();
      return 'not ended';
    } finally {
      clearTimeout(timer);
    }
  }

  /** With all that it has started: a test may be in an endless loop. */
  stop() {
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
    this.#child = undefined;
  }
}
