import { render } from 'preact';
import { App } from './app.tsx';
import { followAddress } from './current-thread.ts';
import { loadInfo } from './info.ts';
import { listenToKeys } from './keys.ts';
import { loadThreads } from './threads.ts';

followAddress();
listenToKeys();
void loadInfo();
void loadThreads();
// Another page, or another person, may have changed them.
addEventListener('focus', () => void loadThreads());
render(<App />, document.body);
