const infrastructure: readonly string[] = [
  ...['service.*', 'deployment.*', 'telemetry.*', 'host.*', 'k8s.*', 'cloud.*', 'os.*', 'container.id'],
  ...['container.name', 'container.image.*', 'container.runtime.*', 'process.executable.name', 'process.runtime.*'],
  ...['faas.name', 'faas.version', 'faas.instance', 'faas.invocation.id', 'aws.request_id', 'release', 'version'],
  ...['environment', 'env', 'code.function', 'code.function.name', 'code.namespace', 'code.filepath', 'code.file.path'],
  ...['thread.id', 'thread.name', 'otel.library.*', 'otel.scope.*', 'operation.name', 'resource.name', 'peer.service'],
  ...['session.id', 'session.previous_id', 'user.id', 'enduser.id', 'event.name', 'level', 'feature_flag.key'],
];

const failures: readonly string[] = [
  ...['error.type', 'error.message', 'exception.type', 'exception.message', 'exception.stacktrace'],
  ...['exception.escaped', 'otel.status_code', 'otel.status_description', 'http.status_text', 'http.error_name'],
  ...['http.error_message', 'langfuse.observation.level', 'langfuse.observation.status_message'],
];

const protocols: readonly string[] = [
  ...['server.address', 'client.address', 'net.host.*', 'net.peer.*', 'net.sock.*', 'net.protocol.*', 'net.transport'],
  ...['network.local.*', 'network.peer.*', 'network.protocol.*', 'network.transport', 'network.type', 'url.scheme'],
  ...['url.domain', 'url.template', 'http.flavor', 'http.host', 'http.scheme', 'http.server_name', 'http.user_agent'],
  ...['http.client_ip', 'user_agent.name', 'user_agent.original', 'user_agent.version', 'db.system', 'db.system.name'],
  ...['db.name', 'db.namespace', 'db.user', 'db.instance.id', 'db.query.summary', 'messaging.system'],
  ...['messaging.system.name', 'messaging.client.id', 'messaging.consumer.group.name', 'messaging.message.id'],
  ...['messaging.message.conversation_id', 'messaging.destination.partition.id', 'rpc.system', 'rpc.system.name'],
  ...['rpc.response.status_code', 'jsonrpc.protocol.version', 'jsonrpc.request.id', 'mcp.method.name'],
  ...['mcp.protocol.version', 'mcp.session.id'],
];

const calls: readonly string[] = [
  ...['id', 'name', 'version', 'description'].map((field) => `gen_ai.agent.${field}`),
  ...['name', 'type', 'description'].map((field) => `gen_ai.tool.${field}`),
  ...['gen_ai.workflow.name', 'gen_ai.guardrail.name', 'gen_ai.data_source.id', 'gen_ai.memory.store.id'],
  ...['gen_ai.memory.record.id', 'gen_ai.main_agent.id', 'gen_ai.main_agent.name', 'gen_ai.skill.id'],
  ...['gen_ai.skill.name', 'gen_ai.token.type', 'gen_ai.evaluation.name', 'gen_ai.evaluation.score.label'],
  ...['gen_ai.event.start_time', 'gen_ai.event.end_time', 'gen_ai.pipeline.name', 'openai.api.type'],
  ...['openai.response.system_fingerprint', 'gen_ai.openai.response.system_fingerprint'],
  // Parameters that some sources set as fields of one attribute.
  ...[
    'function_call',
    'include',
    'modalities',
    'parallel_tool_calls',
    'reasoning',
    'service_tier',
    'stop_sequences',
  ].map((name) => `ls_invocation_params.${name}`),
];

const libraries: readonly string[] = [
  ...['openinference.span.kind', 'agent.name', 'tool.name', 'tool.description', 'graph.node.id', 'graph.node.name'],
  ...['graph.node.parent_id', 'prompt.id', 'ai.toolCall.name', 'ai.response.timestamp', 'ai.finishReason'],
  ...['traceloop.span.kind', 'traceloop.entity.name', 'traceloop.entity.path', 'traceloop.entity.version'],
  ...['traceloop.workflow.name', 'mastra.span.type', 'span.type', 'agent_name', 'adk.workflow.name'],
  ...['gcp.vertex.agent.event_id', 'gcp.vertex.agent.invocation_id'],
  ...['langfuse.observation.type', 'langfuse.observation.prompt.name', 'langfuse.observation.prompt.version'],
  ...['langfuse.trace.name', 'langfuse.version', 'langfuse.release', 'langfuse.environment'],
  ...['id', 'name', 'dataset.id', 'item.id', 'item.version'].map((field) => `langfuse.experiment.${field}`),
  ...['langsmith.span.id', 'langsmith.span.parent_id', 'langsmith.span.dotted_order', 'langsmith.span.kind'],
  ...['langsmith.trace.id', 'langsmith.trace.name', 'langsmith.trace.session_id', 'langsmith.trace.session_name'],
  ...['sentry.op', 'sentry.origin', 'sentry.source', 'sentry.environment', 'sentry.release', 'sentry.kind'],
];

/**
 * Names of attributes that never contain what a model or a tool was asked or answered. A name that ends with `*` stands
 * for all that begin with the rest. Names that the mapping tables read are not listed again.
 */
export const NO_CONTENT: readonly string[] = [...infrastructure, ...failures, ...protocols, ...calls, ...libraries];
