/**
 * What a driver is to do, as the orchestrator has given it to this process:
 *
 * - `workload`, how many `turns` of it are measured, and how many `warmupTurns` come before;
 * - `isDelivered`, whether the clock runs until everything has arrived.
 */
export const plan = { workload: 'agent', isDelivered: true, ...JSON.parse(process.argv[2]) };
