import type { Attributes } from '#src/otel/conventions/values.ts';

/** The facts about a vocabulary that its tables do not contain. */
export interface Notes {
  readonly title: string;
  readonly specification?: string;
  /** Attributes of spans whose run types the page shows. */
  readonly kinds?: readonly Attributes[];
  /** Attributes of the specification that no row reads, with the reason. `.*` matches all names with the prefix. */
  readonly omitted?: readonly (readonly [attribute: string, reason: string])[];
}

const samples = (attribute: string, ...values: readonly string[]): Attributes[] =>
  values.map((value) => ({ [attribute]: value }));

const NO_FIELD = 'runs have no matching field';
const CONNECTION = 'describes the connection, which many runs share';
const OTHER_SYSTEMS = 'specific to one database system';
const VERDICTS = 'become feedback in the receiver';

/** By the name of the vocabulary. */
export const notes: Readonly<Record<string, Notes>> = {
  runspan: {
    title: 'runspan',
    kinds: samples('runspan.run_type', 'parser'),
  },
  langsmith: {
    title: 'LangSmith',
    specification: 'https://docs.smith.langchain.com/observability/how_to_guides/trace_with_opentelemetry',
    kinds: samples('langsmith.span.kind', 'LLM', 'chain', 'tool', 'retriever', 'embedding', 'prompt', 'parser'),
  },
  openinference: {
    title: 'OpenInference',
    specification: 'https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md',
    kinds: samples(
      'openinference.span.kind',
      'LLM',
      'EMBEDDING',
      'RETRIEVER',
      'RERANKER',
      'TOOL',
      'PROMPT',
      'CHAIN',
      'AGENT',
      'GUARDRAIL',
      'EVALUATOR',
    ),
    omitted: [
      ['openinference.span.kind', 'distinguishes guardrails and evaluators from other chains'],
      ['tool.description', 'describes the definition of a tool, not a call'],
      ['tool.json_schema', 'describes the definition of a tool, not a call'],
      ['prompt.vendor', NO_FIELD],
      ['prompt.id', NO_FIELD],
      ['prompt.url', NO_FIELD],
      ['graph.node.id', 'the parents of runs are taken from the spans'],
      ['graph.node.name', 'the parents of runs are taken from the spans'],
      ['graph.node.parent_id', 'the parents of runs are taken from the spans'],
      ['annotations.*', VERDICTS],
      ['evaluations.*', VERDICTS],
      ['trace.annotations.*', VERDICTS],
      ['trace.evaluations.*', VERDICTS],
      ['session.annotations.*', VERDICTS],
      ['session.evaluations.*', VERDICTS],
    ],
  },
  gen_ai: {
    title: 'GenAI',
    specification: 'https://github.com/open-telemetry/semantic-conventions-genai',
    kinds: [
      ...samples(
        'gen_ai.operation.name',
        'chat',
        'generate_content',
        'text_completion',
        'embeddings',
        'retrieval',
        'execute_tool',
        'create_agent',
        'invoke_agent',
        'invoke_workflow',
        'plan',
        'search_memory',
        'upsert_memory',
      ),
      { 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.workflow.name': 'report' },
    ],
    omitted: [
      ['gen_ai.agent.id', NO_FIELD],
      ['gen_ai.agent.description', NO_FIELD],
      ['gen_ai.agent.version', NO_FIELD],
      ['gen_ai.data_source.id', NO_FIELD],
      ['gen_ai.embeddings.dimension.count', NO_FIELD],
      ['gen_ai.main_agent.*', NO_FIELD],
      ['gen_ai.skill.*', NO_FIELD],
      ['gen_ai.memory.store.id', NO_FIELD],
      ['gen_ai.memory.record.id', NO_FIELD],
      ['gen_ai.memory.record.count', NO_FIELD],
      ['openai.api.type', NO_FIELD],
      ['openai.response.system_fingerprint', NO_FIELD],
      ['gen_ai.openai.response.system_fingerprint', NO_FIELD],
      ['gen_ai.token.type', 'used by metrics, not by spans'],
      ['gen_ai.token.modality', 'used by metrics, not by spans'],
      ['gen_ai.tool.description', 'describes the definition of a tool, not a call'],
      ['gen_ai.tool.type', 'describes the definition of a tool, not a call'],
      ['gen_ai.evaluation.*', VERDICTS],
    ],
  },
  ai_sdk: {
    title: 'AI SDK',
    specification: 'https://ai-sdk.dev/docs/ai-sdk-core/telemetry',
    kinds: samples(
      'ai.operationId',
      'ai.generateText',
      'ai.generateText.doGenerate',
      'ai.streamText.doStream',
      'ai.toolCall',
      'ai.embed',
      'ai.embed.doEmbed',
      'ai.rerank.doRerank',
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
    omitted: [
      ['gcp.vertex.agent.event_id', NO_FIELD],
      ['gcp.vertex.agent.invocation_id', NO_FIELD],
    ],
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
    kinds: samples('traceloop.span.kind', 'workflow', 'task', 'agent', 'tool'),
  },
  langfuse: {
    title: 'Langfuse',
    specification: 'https://langfuse.com/integrations/native/opentelemetry',
    kinds: samples('langfuse.observation.type', 'generation', 'tool', 'retriever', 'embedding', 'agent', 'span'),
  },
  mcp: {
    title: 'MCP',
    specification: 'https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md',
    kinds: samples('mcp.method.name', 'tools/call', 'tools/list', 'resources/read', 'prompts/get', 'initialize'),
    omitted: [
      ['mcp.method.name', NO_FIELD],
      ['mcp.protocol.version', CONNECTION],
      ['mcp.session.id', 'identifies a connection, not a conversation'],
      ['jsonrpc.protocol.version', CONNECTION],
      ['jsonrpc.request.id', NO_FIELD],
    ],
  },
  http: {
    title: 'HTTP',
    specification: 'https://opentelemetry.io/docs/specs/semconv/http/http-spans/',
    kinds: [
      { 'http.request.method': 'GET', 'url.full': 'https://a.example/users/7?page=2' },
      { 'http.request.method': 'GET', 'http.route': '/users/:id' },
    ],
    omitted: [
      ['http.request.header.*', 'requests have many long headers; values under secret names are hidden'],
      ['http.response.header.*', 'requests have many long headers; values under secret names are hidden'],
      ['http.request.resend_count', NO_FIELD],
      ['http.request.size', 'the inputs contain no sizes'],
      ['http.request.body.size', 'the inputs contain no sizes'],
      ['http.request_content_length', 'the inputs contain no sizes'],
      ['http.request_content_length_uncompressed', 'the inputs contain no sizes'],
      ['http.response.size', 'the outputs contain only the size of the body'],
      ['http.response_content_length_uncompressed', 'the outputs contain only the size of the body'],
      ['http.connection.state', CONNECTION],
      ['http.flavor', CONNECTION],
      ['http.client_ip', CONNECTION],
      ['http.host', 'a part of the URL'],
      ['http.scheme', 'a part of the URL'],
      ['http.server_name', CONNECTION],
      ['http.user_agent', 'a header'],
      ['url.original', 'the URL as it was before parsing'],
      ['url.template', 'a part of the name'],
      ['url.scheme', 'a part of the URL'],
      ['url.domain', 'a part of the URL'],
      ['url.extension', 'a part of the URL'],
      ['url.fragment', 'a part of the URL'],
      ['url.port', 'a part of the URL'],
      ['url.registered_domain', 'a part of the URL'],
      ['url.subdomain', 'a part of the URL'],
      ['url.top_level_domain', 'a part of the URL'],
    ],
  },
  database: {
    title: 'Databases',
    specification: 'https://opentelemetry.io/docs/specs/semconv/db/database-spans/',
    kinds: [
      { 'db.system.name': 'pinecone', 'db.operation.name': 'query' },
      { 'db.system.name': 'pinecone', 'db.operation.name': 'upsert' },
      { 'db.system.name': 'postgresql', 'db.operation.name': 'SELECT' },
    ],
    omitted: [
      ['db.system', NO_FIELD],
      ['db.system.name', NO_FIELD],
      ['db.namespace', CONNECTION],
      ['db.name', CONNECTION],
      ['db.user', CONNECTION],
      ['db.connection_string', CONNECTION],
      ['db.instance.id', CONNECTION],
      ['db.client.*', CONNECTION],
      ['db.query.summary', 'summarizes the query, and the query itself is recorded'],
      ['db.operation.batch.size', NO_FIELD],
      ['db.cassandra.*', OTHER_SYSTEMS],
      ['db.cosmosdb.*', OTHER_SYSTEMS],
      ['db.elasticsearch.*', OTHER_SYSTEMS],
      ['db.jdbc.*', OTHER_SYSTEMS],
      ['db.mssql.*', OTHER_SYSTEMS],
      ['db.redis.*', OTHER_SYSTEMS],
    ],
  },
  messaging: {
    title: 'Messaging',
    specification: 'https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/',
    kinds: [{ 'messaging.system': 'kafka' }, { 'rpc.system': 'grpc' }, { 'faas.trigger': 'timer' }],
    omitted: [
      ['messaging.*', 'describes the broker and the message, but contains no message content'],
      ['rpc.*', 'describes the protocol, but contains no message content'],
      ['faas.*', 'describes the platform'],
    ],
  },
  general: {
    title: 'Any span',
    specification: 'https://opentelemetry.io/docs/specs/semconv/general/',
  },
};
