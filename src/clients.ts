/** Clients for agent servers, the control plane and feedback URLs. @packageDocumentation */
export type {
  A2A,
  A2AMessage,
  A2APart,
  A2ARequest,
  A2AResult,
  A2AStream,
  AgentCard,
} from './clients/agent-server/a2a.ts';
export { AgentServer, type AgentServerInfo, type AgentSystem } from './clients/agent-server/agent-server.ts';
export type { AgentServerOptions, PageRequest } from './clients/agent-server/agent-service.ts';
export type {
  AgentConfig,
  Assistant,
  AssistantCreate,
  AssistantFilter,
  AssistantGraph,
  AssistantSearch,
  Assistants,
  AssistantUpdate,
  AssistantVersionSearch,
  GraphSchemas,
} from './clients/agent-server/assistants.ts';
export type {
  Cron,
  CronCreate,
  CronFilter,
  CronSchedule,
  CronSearch,
  Crons,
  CronUpdate,
  ThreadCronCreate,
} from './clients/agent-server/crons.ts';
export * from './clients/agent-server/errors.ts';
export type { RunRequest, RunSettings, StatelessRunRequest, StreamMode } from './clients/agent-server/run-request.ts';
export type {
  AgentRun,
  AgentRunFilter,
  AgentRunStatus,
  AgentRuns,
  CancelOptions,
  JoinOptions,
  JoinStreamOptions,
  RunCancellation,
  StatelessRuns,
} from './clients/agent-server/runs.ts';
export type { AgentStore, NamespaceSearch, StoreItem, StorePut, StoreSearch } from './clients/agent-server/store.ts';
export type {
  AgentEvent,
  AgentEventOf,
  AgentMessage,
  CheckpointsEvent,
  CustomEvent,
  DebugEvent,
  EndEvent,
  ErrorEvent,
  EventsEvent,
  FeedbackEvent,
  MalformedEvent,
  MessagesCompleteEvent,
  MessagesEvent,
  MessagesMetadataEvent,
  MessagesPartialEvent,
  MetadataEvent,
  OtherEvent,
  RunError,
  TasksEvent,
  ToolsEvent,
  UpdatesEvent,
  ValuesEvent,
} from './clients/agent-server/streams/agent-event.ts';
export type { RunStream, StreamOptions } from './clients/agent-server/streams/run-stream.ts';
export type * from './clients/agent-server/thread.ts';
export type { ThreadStateOptions, ThreadStreamOptions, Threads } from './clients/agent-server/threads.ts';
export type {
  CallOptions,
  ClientHooks,
  ClientOptions,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
} from './clients/client-options.ts';
export { ControlPlane, type ControlPlaneOptions } from './clients/control-plane/control-plane.ts';
export type { ListOptions } from './clients/control-plane/control-plane-api.ts';
export * from './clients/control-plane/deployment.ts';
export type { Deployed, Updated, WaitOptions } from './clients/control-plane/deployment-wait.ts';
export type {
  DeleteDeploymentOptions,
  DeletedDeployments,
  Deployments,
  ListDeploymentsOptions,
} from './clients/control-plane/deployments.ts';
export type { Integration, Integrations, Repository } from './clients/control-plane/integrations.ts';
export type {
  ComputeConfig,
  Listener,
  ListenerCreate,
  ListenerPatch,
  Listeners,
} from './clients/control-plane/listeners.ts';
export type * from './clients/control-plane/resource-spec.ts';
export {
  type ListRevisionsOptions,
  type Revision,
  RevisionError,
  type RevisionErrorCode,
  type RevisionFacts,
  type RevisionStatus,
  type Revisions,
} from './clients/control-plane/revision.ts';
export type { Spelling } from './clients/control-plane/spelling.ts';
export type {
  UploadedSource,
  UploadProgress,
  UploadSourceOptions,
  UploadUrl,
} from './clients/control-plane/upload/source-upload.ts';
export {
  ApiError,
  type CallFacts,
  ConnectionError,
  type FailedResponse,
  InvalidRequestError,
  InvalidResponseError,
  TimeoutError,
  type ValidationError,
} from './clients/errors.ts';
export * from './clients/feedback.ts';
export * from './clients/feedback-token.ts';
export type { Page, PageList } from './clients/page.ts';
