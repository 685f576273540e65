import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { api, isLocked, problemOf, readPermission } from '../data/api.ts';
import { listenForChanges } from '../data/changes.ts';
import { Button, Problem } from '../elements/controls.tsx';

const problem: Signal<string | undefined> = signal(undefined);

export function Login(): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void logIn(`${new FormData(event.currentTarget as HTMLFormElement).get('key') ?? ''}`);
  };
  return (
    <main class="empty">
      <h1>This receiver requires a key</h1>
      <p>
        Enter an API key that can read: a read key, the value of <code>RUNSPAN_RECEIVER_KEY</code>, or the value of the
        option <code>apiKey</code>.
      </p>
      <form class="line" onSubmit={submit}>
        <label>
          Key <input name="key" type="password" required autocomplete="current-password" />
        </label>
        <Button text="Log in" type="submit" />
      </form>
      <Problem text={problem.value} />
    </main>
  );
}

/** Logs in with the key in the URL (`#key=…`). Removes the key from the URL, because users save and share URLs. */
export async function logInFromAddress(): Promise<void> {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (key === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  await logIn(key);
}

async function logIn(key: string): Promise<void> {
  try {
    await api.login(key.trim());
  } catch (error) {
    problem.value = problemOf(error);
    return;
  }
  problem.value = undefined;
  isLocked.value = false;
  void readPermission();
  void listenForChanges();
}
