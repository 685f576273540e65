/** A test proves the row whose number its title ends in. */
const PROOF = /\[fault (\d+)\]$/;

/** The row that a test proves by its title; undefined where it is about none. */
export function faultOf(title) {
  const number = PROOF.exec(title)?.[1];
  return number === undefined ? undefined : Number(number);
}

/**
 * What is wrong between the table of faults, the report that vitest has written as JSON, and the list of rows that have no
 * test yet: a row without a passing test, a test of a row that is not there, a row of the list that has its test.
 */
export function complaintsOf(report, faults, unproven) {
  const known = new Set(faults.map(({ number }) => number));
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults).flatMap(proofOf);
  const proven = new Set(tests.filter(({ status }) => status === 'passed').map(({ number }) => number));
  return [
    ...faults
      .filter(({ number }) => !proven.has(number) && !unproven.includes(number))
      .map(({ number, fault }) => `no passing test has a title that ends in [fault ${number}]: ${fault}`),
    ...tests
      .filter(({ number }) => !known.has(number))
      .map(({ title, number }) => `the table has no fault ${number}, which a test is about: ${title}`),
    ...unproven
      .filter((number) => proven.has(number))
      .map((number) => `fault ${number} has a test: take it off the list of those that have none`),
    ...unproven
      .filter((number) => !known.has(number))
      .map((number) => `the table has no fault ${number}, which the list of those without a test has`),
  ];
}

function proofOf({ title, status }) {
  const number = faultOf(title);
  return number === undefined ? [] : [{ title, status, number }];
}
