// Calls a model with an unwrapped client, without a flush, and exits with a code of its own. Prints the result and, at the
// exit, the ledger.
import { stats } from 'runspan';
import { unwrapped } from './application.mjs';

console.log(await unwrapped(process.env.MODEL_URL));
process.on('exit', () => console.log(JSON.stringify(stats())));
process.exitCode = 3;
