
  const ask = async (input) => {
    const body = JSON.stringify({ model: 'small', input });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(process.env.OPENAI_BASE_URL + '/responses', { method: 'POST', headers, body });
    return (await response.json()).id;
  };
  const two = async (id) => ({ ids: [typeof (await ask(id)), typeof (await ask('again'))] });
  const fail = async () => {
    await ask('fails');
    throw new Error('of the handler');
  };
    import fastify from 'fastify';
    const app = fastify();
    app.post('/users/:id', (request) => two(request.params.id));
    app.post('/fail', fail);
    await app.listen({ port: 3000 });
    process.once('SIGTERM', () => app.close());