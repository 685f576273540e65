// Records a run, waits for its delivery only briefly, or until SENT runs are delivered, and exits with its own exit
// code.
import { stats, traceable } from 'runspan';

process.env.RUNSPAN_DEV = '{"limits":{"exitFlushMs":300}}';
await traceable(async () => 'answer', { name: 'answer' })();
while (stats().sent < Number(process.env.SENT ?? 0)) await new Promise((resolve) => setTimeout(resolve, 20));
process.exitCode = 3;
