import { test } from 'vitest';
import { killedUnderLoad } from '../receiver/killed-store.ts';
import { storePath } from '../receiver/local-store.ts';

const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 50);

test('a receiver that is killed again and again loses nothing that it has acknowledged', {
  timeout: 900_000,
}, async () => {
  const path = storePath();
  let next = 0;
  for (let round = 0; round < ROUNDS; round += 1) next = await killedUnderLoad(path, next, 100 + ((round * 37) % 400));
  console.log(`killed ${ROUNDS} times, ${next} requests sent`);
});
