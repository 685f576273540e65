// A receiver in a separate process, so that it can be killed. It reports each run's end before it responds, and exits
// when its parent exits.
import { createReceiver, MemoryStore } from 'runspan/receiver';

class TellingStore extends MemoryStore {
  async apply(scope, operations) {
    await super.apply(scope, operations);
    const ended = operations.filter(({ fields }) => fields.end_time !== undefined).map(({ id }) => id);
    if (ended.length > 0) process.send({ ended });
  }
}

const { url } = await createReceiver({ port: Number(process.argv[2]), store: new TellingStore() });
process.send({ url });
process.on('message', (message) => process.send({ echo: message }));
process.on('disconnect', () => process.exit());
