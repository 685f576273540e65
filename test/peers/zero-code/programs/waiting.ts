// Calls a model, and then waits for a signal.
import './raw-fetch.mjs';

setInterval(() => {}, 60_000);
