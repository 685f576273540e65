// Starts the in-memory agent server, and sends its address to the parent process. Its state is stored in the working
// folder.
import { startServer } from '@langchain/langgraph-api/server';

const [, , graph, port] = process.argv;
const { host } = await startServer({
  port: Number(port),
  nWorkers: 4,
  host: '127.0.0.1',
  cwd: process.cwd(),
  graphs: { agent: `${graph}:graph` },
});
process.send?.({ url: `http://${host.replace(/^https?:\/\//, '')}` });
process.on('disconnect', () => process.exit(0));
