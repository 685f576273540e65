// Hides secrets by their names, by their paths and by patterns.
import { configure, flush, redact, secretPatterns, traceable } from 'runspan';

configure({
  redact: redact({
    paths: ['inputs.user.email', 'outputs.**.iban'],
    patterns: [...secretPatterns, /\b\d{3}-\d{2}-\d{4}\b/],
    replace: (found, path) => `[${path}: ${found.length} characters]`,
  }),
});

const charge = traceable(
  async ({ user }) => {
    if (user.ssn === undefined) throw new Error(`No number for ${user.name}; the key was ghp_${'a1B2'.repeat(9)}`);
    return { account: { owner: user.name, iban: 'DE89370400440532013000' } };
  },
  { name: 'charge', runType: 'tool' },
);

const user = { name: 'Ada', email: 'ada@example.com', ssn: '123-45-6789', password: 'lovelace' };
await charge({ user, headers: { authorization: 'Bearer abc', accept: '*/*' } });
await charge({ user: { name: 'Bob' } }).catch((error) => console.log('The program sees:', error.message.slice(0, 22)));

await flush();
