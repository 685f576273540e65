import { render } from 'preact';
import { App } from './app.tsx';
import { listen } from './data/changes.ts';
import { logInFromAddress } from './top/login.tsx';

document.addEventListener('visibilitychange', () => void listen());
addEventListener('hashchange', () => void logInFromAddress());
void logInFromAddress()
  .then(listen)
  .then(() => render(<App />, document.body));
