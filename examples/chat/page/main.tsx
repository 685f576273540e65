import { render } from 'preact';
import { App, listenToKeys } from './app.tsx';
import { followAddress } from './threads.ts';

followAddress();
listenToKeys();
render(<App />, document.body);
