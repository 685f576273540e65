import { render } from 'preact';
import { App } from './app.tsx';
import { followAddress, lookAgain } from './current-thread.ts';
import { loadInfo } from './info.ts';
import { listenToKeys } from './keys.ts';
import { loadThreads } from './threads.ts';

followAddress();
listenToKeys();
void loadInfo();
void loadThreads();
addEventListener('focus', () => void lookAgain());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void lookAgain();
});
render(<App />, document.body);
