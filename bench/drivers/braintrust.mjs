/** The functions traced by braintrust: functions wrapped in `wrapTraced`, one logger. */
import '../peers/braintrust.mjs';
