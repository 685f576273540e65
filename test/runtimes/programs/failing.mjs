// Records a run, waits for its delivery only briefly, and exits with a code of its own.
import { configure, traceable } from 'runspan';

configure({ limits: { exitFlushMs: 300 } });
await traceable(async () => 'answer', { name: 'answer' })();
process.exitCode = 3;
