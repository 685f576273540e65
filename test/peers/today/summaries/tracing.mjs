// The ways in which a program traces its own functions and clients.

const untouched = {
  client: (client) => client,
  tool: (work) => work,
  agent: (work) => (_ids, question) => work(question),
};

async function wrapped() {
  const [{ traceable }, { wrapOpenAI }] = [await import('runspan'), await import('runspan/openai')];
  return {
    client: wrapOpenAI,
    tool: (work, name) => traceable(work, { name, runType: 'tool' }),
    agent(work, name) {
      const agent = traceable(work, { name });
      return (ids, question) => agent.with(ids)(question);
    },
  };
}

/** OpenInference's instrumentation and helpers. */
async function spans() {
  const { load } = await import('../../otel/load.mjs');
  const core = await load('@arizeai/openinference-core');
  const { OpenAIInstrumentation } = await load('@arizeai/openinference-instrumentation-openai');
  const { context } = await load('@opentelemetry/api');
  return {
    client(client) {
      new OpenAIInstrumentation().manuallyInstrument(client.constructor);
      return client;
    },
    tool: (work, name) => core.traceTool(work, { name }),
    agent(work, name) {
      const agent = core.traceAgent(work, { name });
      return ({ userId, threadId }, question) => {
        const inSession = core.setSession(context.active(), { sessionId: threadId });
        return context.with(core.setUser(inSession, { userId }), () => agent(question));
      };
    },
  };
}

export const tracing = async (name) => (name === 'untouched' ? untouched : name === 'wrapped' ? wrapped() : spans());
