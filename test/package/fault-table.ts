import type { Fault, FaultGroup } from '../faults/faults.mjs';

/** The page of the documentation that says what is required of the library when something goes wrong. */
export function faultTable(groups: readonly FaultGroup[]): string {
  return [
    '# What can go wrong, and what happens then?',
    '<!-- Made from test/faults/faults.mjs by `npm run matrix`. -->',
    [
      'Each row is held by tests whose titles end in its number, and `npm test` fails when one has none. Limits are the defaults of',
      '[configuration.md](configuration.md); words in brackets are the reasons of [delivery.md](delivery.md#the-ledger). Where a test',
      'cannot bring a fault about, the row says what stands for it.',
    ].join('\n'),
    ...groups.flatMap(({ title, faults }) => [`## ${title}`, table(faults)]),
    '',
  ].join('\n\n');
}

function table(faults: readonly Fault[]): string {
  const rows = faults.map(({ number, fault, required, simulated }) => {
    const told = simulated === undefined ? required : `${required} *Simulated: ${simulated}.*`;
    return `| ${number} | ${fault} | ${told} |`;
  });
  return ['| | when | what is required |', '| --- | --- | --- |', ...rows].join('\n');
}
