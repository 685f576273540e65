// Calls a model with an unwrapped client, without a flush, and exits with its own exit code. Prints the result and, at
// exit, the ledger.
import { stats } from 'runspan';
import { unwrapped } from './application.mjs';

console.log(await unwrapped(process.env.MODEL_URL));
process.on('exit', () => console.log(JSON.stringify(stats())));
process.exitCode = 3;
