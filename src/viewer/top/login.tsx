import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { api, isLocked, problemOf } from '../data/api.ts';
import { listen } from '../data/changes.ts';

/** Why the last key did not open it. */
const problem: Signal<string | undefined> = signal(undefined);

/** Asks for the key of the receiver. */
export function Login(): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void logIn(`${new FormData(event.currentTarget as HTMLFormElement).get('key') ?? ''}`);
  };
  return (
    <main class="empty">
      <h1>This receiver has a key</h1>
      <p>
        It is what <code>RUNSPAN_RECEIVER_KEY</code>, or <code>apiKey</code>, was set to where the receiver was started.
      </p>
      <form class="login" onSubmit={submit}>
        <label>
          Key <input name="key" type="password" required autocomplete="current-password" />
        </label>
        <button type="submit" class="button">
          Open
        </button>
      </form>
      {problem.value !== undefined && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </main>
  );
}

/** A key in the address, `#key=…`, is used and taken out of it: addresses are kept and sent on. */
export async function logInFromAddress(): Promise<void> {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (key === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  await logIn(key);
}

async function logIn(key: string): Promise<void> {
  try {
    await api.login(key);
  } catch (error) {
    problem.value = problemOf(error);
    return;
  }
  problem.value = undefined;
  isLocked.value = false;
  void listen();
}
