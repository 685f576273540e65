// Makes all calls without a flush, and exits with its own exit code. Prints the results and, at exit, the ledger.
import { stats } from 'runspan';
import { calls } from './application.mjs';

for (const [name, call] of Object.entries(calls)) console.log(`${name}: ${await call(process.env.MODEL_URL)}`);
process.on('exit', () => console.log(JSON.stringify(stats())));
process.exitCode = 3;
