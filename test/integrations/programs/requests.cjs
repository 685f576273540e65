// A server with handlers as in applications. Prints what clients receive, and what the handlers see of Node's objects.
const { createServer } = require('node:http');
const { connect } = require('node:net');
const { traceable } = require('runspan');

const ask = async (content) => {
  const body = JSON.stringify({ model: 'small', messages: [{ role: 'user', content }] });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${process.env.MODEL}/v1/chat/completions`, { method: 'POST', headers, body });
  return (await response.json()).choices[0].message.content;
};
const traced = traceable(ask, { name: 'traced' });
const lines = [];
process.on('warning', ({ name }) => lines.push(`warning ${name}`));

const counts = (emitter) => emitter.eventNames().map((name) => `${String(name)} ${emitter.listenerCount(name)}`);

const routes = {
  async '/two'(_request, response) {
    response.end(`${await ask('one')} ${await traced('two')}`);
  },
  '/events'(request, response) {
    request.on('end', async () => response.end(await ask('in an event'))).resume();
  },
  async '/listeners'(request, response) {
    const before = [...counts(request), ...counts(response)];
    await ask('listeners');
    lines.push(before, [...counts(request), ...counts(response)]);
    // Node warns about the eleventh listener.
    for (const emitter of [request, response]) for (let at = 0; at < 10; at++) emitter.on('close', () => {});
    response.end();
  },
  async '/stream'(_request, response) {
    for (const word of ['one', 'two']) response.write(await ask(word));
    response.end();
  },
  '/none'(request, response) {
    lines.push(Object.keys(request), Object.keys(response), Object.getOwnPropertySymbols(request).map(String));
    response.writeHead(204).end();
  },
};

const server = createServer((request, response) => routes[request.url](request, response));
server.listen(0, '127.0.0.1', () => {
  const socket = connect(server.address().port, '127.0.0.1');
  const paths = Object.keys(routes);
  for (const path of paths) {
    const close = path === paths.at(-1) ? 'connection: close\r\n' : '';
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\n${close}content-length: 4\r\n\r\nbody`);
  }
  let received = '';
  socket.setEncoding('utf8').on('data', (text) => {
    received += text;
  });
  socket.on('close', () => {
    server.close();
    console.log(received.replace(/date: .*/gi, 'date'));
    console.log(JSON.stringify(lines, null, 1));
  });
});
