/**
 * Import this module before any module of `src/`. The library then uses the timers of a virtual clock in this test
 * file, because it reads Node's timers once, when it is loaded. Node's timers are restored immediately.
 */
import './thread-work.ts';
import './virtual-clock.ts';

import { loadUndici } from '#src/http/connections.ts';
import { setTimer } from '#src/platform/timers.ts';
import { restoreTimers, VirtualTimer, virtualClock } from './virtual-clock.ts';

restoreTimers();

const timer: object = setTimer(() => {}, 1);
if (!(timer instanceof VirtualTimer)) throw new Error('src/platform/timers.ts was loaded before: import this first');
virtualClock.reset();

// At its first use, it would take an unknown number of turns of the event loop, in which the clock may advance.
await loadUndici();

export { virtualClock } from './virtual-clock.ts';
