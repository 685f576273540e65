/**
 * Import this before anything of `src/`: its timers are those of a virtual clock from then on, in this file of tests. The library
 * takes Node's timers once, when it is loaded, and the process gets them back at once.
 */
import './thread-work.ts';
import './virtual-clock.ts';

import { setTimer } from '../../src/base/timers.ts';
import { restoreTimers, VirtualTimer, virtualClock } from './virtual-clock.ts';

restoreTimers();

const timer: object = setTimer(() => {}, 1);
if (!(timer instanceof VirtualTimer)) throw new Error('src/base/timers.ts was loaded before: import this first');
virtualClock.reset();

export { virtualClock } from './virtual-clock.ts';
