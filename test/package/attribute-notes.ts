import type { Attributes } from '#src/otel/conventions/values.ts';

/** The facts about a vocabulary that its tables do not contain. */
export interface Notes {
  readonly title: string;
  readonly specification?: string;
  /** Attributes of spans whose run types the page shows. */
  readonly kinds?: readonly Attributes[];
  /** Attributes of the specification that no row reads, by the reason. `.*` matches all names with the prefix. */
  readonly omitted?: Readonly<Record<string, readonly string[]>>;
}

/** Returns a span for each value, which are separated by white space. */
const samples = (attribute: string, values: string): Attributes[] =>
  values.split(/\s+/).map((value) => ({ [attribute]: value }));

const NO_FIELD = 'runs have no matching field';
const CONNECTION = 'describes the connection, which many runs share';
const OTHER_SYSTEMS = 'specific to one database system';
const VERDICTS = 'become feedback in the receiver';

/** By the name of the vocabulary. */
export const notes: Readonly<Record<string, Notes>> = {
  runspan: { title: 'runspan', kinds: samples('runspan.run_type', 'parser') },
  langsmith: {
    title: 'LangSmith',
    specification: 'https://docs.smith.langchain.com/observability/how_to_guides/trace_with_opentelemetry',
    kinds: samples('langsmith.span.kind', 'LLM chain tool retriever embedding prompt parser'),
  },
  openinference: {
    title: 'OpenInference',
    specification: 'https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md',
    kinds: samples(
      'openinference.span.kind',
      'LLM EMBEDDING RETRIEVER RERANKER TOOL PROMPT CHAIN AGENT GUARDRAIL EVALUATOR',
    ),
    omitted: {
      'distinguishes guardrails and evaluators from other chains': ['openinference.span.kind'],
      'describes the definition of a tool, not a call': ['tool.description', 'tool.json_schema'],
      [NO_FIELD]: ['prompt.vendor', 'prompt.id', 'prompt.url'],
      'the parents of runs are taken from the spans': ['graph.node.id', 'graph.node.name', 'graph.node.parent_id'],
      [VERDICTS]: [
        'annotations.*',
        'evaluations.*',
        'trace.annotations.*',
        'trace.evaluations.*',
        'session.annotations.*',
        'session.evaluations.*',
      ],
    },
  },
  gen_ai: {
    title: 'GenAI',
    specification: 'https://github.com/open-telemetry/semantic-conventions-genai',
    kinds: [
      ...samples(
        'gen_ai.operation.name',
        `chat generate_content text_completion embeddings retrieval execute_tool
        create_agent invoke_agent invoke_workflow plan search_memory upsert_memory`,
      ),
      { 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.workflow.name': 'report' },
    ],
    omitted: {
      [NO_FIELD]: [
        'gen_ai.agent.id',
        'gen_ai.agent.description',
        'gen_ai.agent.version',
        'gen_ai.data_source.id',
        'gen_ai.embeddings.dimension.count',
        'gen_ai.main_agent.*',
        'gen_ai.skill.*',
        'gen_ai.memory.store.id',
        'gen_ai.memory.record.id',
        'gen_ai.memory.record.count',
        'openai.api.type',
        'openai.response.system_fingerprint',
        'gen_ai.openai.response.system_fingerprint',
      ],
      'used by metrics, not by spans': ['gen_ai.token.type', 'gen_ai.token.modality'],
      'describes the definition of a tool, not a call': ['gen_ai.tool.description', 'gen_ai.tool.type'],
      [VERDICTS]: ['gen_ai.evaluation.*'],
    },
  },
  ai_sdk: {
    title: 'AI SDK',
    specification: 'https://ai-sdk.dev/docs/ai-sdk-core/telemetry',
    kinds: samples(
      'ai.operationId',
      `ai.generateText ai.generateText.doGenerate ai.streamText.doStream
        ai.toolCall ai.embed ai.embed.doEmbed ai.rerank.doRerank`,
    ),
  },
  mastra: {
    title: 'Mastra',
    specification: 'https://mastra.ai/docs/observability/tracing/exporters/otel',
    kinds: samples('mastra.span.type', 'client_tool_call'),
  },
  adk: {
    title: 'Google ADK',
    specification: 'https://google.github.io/adk-docs/',
    omitted: { [NO_FIELD]: ['gcp.vertex.agent.event_id', 'gcp.vertex.agent.invocation_id'] },
  },
  pydantic_ai: { title: 'pydantic-ai', specification: 'https://ai.pydantic.dev/logfire/' },
  strands: { title: 'Strands', specification: 'https://strandsagents.com/' },
  claude_code: {
    title: 'Claude Code',
    specification: 'https://code.claude.com/docs/en/monitoring-usage',
  },
  codex: {
    title: 'Codex',
    specification: 'https://github.com/openai/codex/tree/main/codex-rs/otel',
    kinds: [
      { target: 'codex_core::tasks' },
      { target: 'codex_core', 'codex.turn.phase': 'sampling' },
      { target: 'codex_core', call_id: 'call_1' },
    ],
  },
  ai_sdk_beside_gen_ai: { title: 'AI SDK with GenAI' },
  traceloop: {
    title: 'Traceloop',
    specification: 'https://github.com/traceloop/openllmetry-js/tree/main/packages/ai-semantic-conventions',
    kinds: samples('traceloop.span.kind', 'workflow task agent tool'),
  },
  langfuse: {
    title: 'Langfuse',
    specification: 'https://langfuse.com/integrations/native/opentelemetry',
    kinds: samples('langfuse.observation.type', 'generation tool retriever embedding agent span'),
  },
  mcp: {
    title: 'MCP',
    specification: 'https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md',
    kinds: samples('mcp.method.name', 'tools/call tools/list resources/read prompts/get initialize'),
    omitted: {
      [NO_FIELD]: ['mcp.method.name', 'jsonrpc.request.id'],
      [CONNECTION]: ['mcp.protocol.version', 'jsonrpc.protocol.version'],
      'identifies a connection, not a conversation': ['mcp.session.id'],
    },
  },
  http: {
    title: 'HTTP',
    specification: 'https://opentelemetry.io/docs/specs/semconv/http/http-spans/',
    kinds: [
      { 'http.request.method': 'GET', 'url.full': 'https://a.example/users/7?page=2' },
      { 'http.request.method': 'GET', 'http.route': '/users/:id' },
    ],
    omitted: {
      'requests have many long headers; values under secret names are hidden': [
        'http.request.header.*',
        'http.response.header.*',
      ],
      [NO_FIELD]: ['http.request.resend_count'],
      'the inputs contain no sizes': [
        'http.request.size',
        'http.request.body.size',
        'http.request_content_length',
        'http.request_content_length_uncompressed',
      ],
      'the outputs contain only the size of the body': [
        'http.response.size',
        'http.response_content_length_uncompressed',
      ],
      [CONNECTION]: ['http.connection.state', 'http.flavor', 'http.client_ip', 'http.server_name'],
      'a part of the URL': [
        'http.host',
        'http.scheme',
        'url.scheme',
        'url.domain',
        'url.extension',
        'url.fragment',
        'url.port',
        'url.registered_domain',
        'url.subdomain',
        'url.top_level_domain',
      ],
      'a header': ['http.user_agent'],
      'the URL as it was before parsing': ['url.original'],
      'a part of the name': ['url.template'],
    },
  },
  database: {
    title: 'Databases',
    specification: 'https://opentelemetry.io/docs/specs/semconv/db/database-spans/',
    kinds: [
      { 'db.system.name': 'pinecone', 'db.operation.name': 'query' },
      { 'db.system.name': 'pinecone', 'db.operation.name': 'upsert' },
      { 'db.system.name': 'postgresql', 'db.operation.name': 'SELECT' },
    ],
    omitted: {
      [NO_FIELD]: ['db.system', 'db.system.name', 'db.operation.batch.size'],
      [CONNECTION]: ['db.namespace', 'db.name', 'db.user', 'db.connection_string', 'db.instance.id', 'db.client.*'],
      'summarizes the query, and the query itself is recorded': ['db.query.summary'],
      [OTHER_SYSTEMS]: [
        'db.cassandra.*',
        'db.cosmosdb.*',
        'db.elasticsearch.*',
        'db.jdbc.*',
        'db.mssql.*',
        'db.redis.*',
      ],
    },
  },
  messaging: {
    title: 'Messaging',
    specification: 'https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/',
    kinds: [{ 'messaging.system': 'kafka' }, { 'rpc.system': 'grpc' }, { 'faas.trigger': 'timer' }],
    omitted: {
      'describes the broker and the message, but contains no message content': ['messaging.*'],
      'describes the protocol, but contains no message content': ['rpc.*'],
      'describes the platform': ['faas.*'],
    },
  },
  general: {
    title: 'Any span',
    specification: 'https://opentelemetry.io/docs/specs/semconv/general/',
  },
};
