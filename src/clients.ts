export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
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
} from './clients/agent-event.ts';
export type { AgentRun, RunStatus } from './clients/agent-run.ts';
export type { AgentRuns, CancelOptions, JoinOptions, JoinStreamOptions, RunFilter } from './clients/agent-runs.ts';
export { AgentServer, type AgentServerOptions } from './clients/agent-server.ts';
export type { AgentServerInfo, AgentSystem } from './clients/agent-system.ts';
export {
  AgentThreads,
  type AgentThreadsOptions,
  type RunEventsOptions,
  type ThreadSummary,
} from './clients/agent-threads.ts';
export {
  ApiError,
  type CallFacts,
  ConnectionError,
  type FailedAnswer,
  InvalidAnswerError,
  TimeoutError,
} from './clients/api-error.ts';
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
} from './clients/assistants.ts';
export type {
  CallOptions,
  ClientHooks,
  ClientOptions,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
} from './clients/client-options.ts';
export { CommandError, type CommandErrorReason } from './clients/command-error.ts';
export { ControlPlane, type ControlPlaneOptions } from './clients/control-plane.ts';
export { createsRevision } from './clients/creates-revision.ts';
export type {
  Cron,
  CronCreate,
  CronFilter,
  CronSchedule,
  CronSearch,
  Crons,
  CronUpdate,
  ThreadCronCreate,
} from './clients/crons.ts';
export type {
  Deployment,
  DeploymentCreate,
  DeploymentPatch,
  DeploymentSource,
  DeploymentStatus,
  DeploymentTier,
  DeploymentType,
  ListenerConfig,
  RevisionSource,
  Secret,
  SecretReference,
  SourceConfig,
  SourceRevisionConfig,
} from './clients/deployment.ts';
export type { Deployed, SupersededEvent, Updated, WaitOptions } from './clients/deployment-wait.ts';
export type {
  DeleteDeploymentOptions,
  DeletedDeployments,
  Deployments,
  ListDeploymentsOptions,
} from './clients/deployments.ts';
export { effectiveResources } from './clients/effective-resources.ts';
export {
  type FeedbackSubmission,
  feedbackLink,
  type SubmitFeedbackOptions,
  submitFeedback,
} from './clients/feedback.ts';
export { FeedbackError, type FeedbackRefusal } from './clients/feedback-error.ts';
export {
  createFeedbackToken,
  createFeedbackTokens,
  type FeedbackServiceOptions,
  type FeedbackToken,
  type FeedbackTokenRequest,
} from './clients/feedback-token.ts';
export type { Integration, Repository } from './clients/integration.ts';
export type { Integrations } from './clients/integrations.ts';
export type { ListOptions } from './clients/list-options.ts';
export type { ComputeConfig, Listener, ListenerCreate, ListenerPatch } from './clients/listener.ts';
export type { Listeners } from './clients/listeners.ts';
export { type AssembledMessage, type AssembledToolCall, MessageAssembler } from './clients/message-assembler.ts';
export type { Page, PageList } from './clients/page.ts';
export type { PageRequest } from './clients/page-request.ts';
export type {
  Container,
  EnvVar,
  LocalObjectReference,
  ResourceRequirements,
  ResourceSpec,
  Volume,
  VolumeMount,
} from './clients/resource-spec.ts';
export type { Revision, RevisionStatus } from './clients/revision.ts';
export { RevisionError, type RevisionErrorCode, type RevisionFacts } from './clients/revision-error.ts';
export type { ListRevisionsOptions, Revisions } from './clients/revisions.ts';
export { RunFailedError, type RunPlace } from './clients/run-failed-error.ts';
export type {
  RunCommand,
  RunRequest,
  RunSettings,
  StatelessRunRequest,
  StreamMode,
} from './clients/run-request.ts';
export type { RunStream, StreamOptions } from './clients/run-stream.ts';
export type { UploadedSource, UploadProgress, UploadSourceOptions } from './clients/source-upload.ts';
export type { Spelling } from './clients/spelling.ts';
export type { RunCancellation, StatelessRuns } from './clients/stateless-runs.ts';
export type { NamespaceSearch, Store, StoreItem, StorePut, StoreSearch } from './clients/store.ts';
export { type LastEvent, type StreamBreak, StreamError } from './clients/stream-error.ts';
export type {
  Checkpoint,
  Interrupt,
  Thread,
  ThreadCreate,
  ThreadFilter,
  ThreadHistory,
  ThreadPrune,
  ThreadSearch,
  ThreadState,
  ThreadStateUpdate,
  ThreadStatus,
  ThreadTask,
  ThreadTimeToLive,
  ThreadUpdate,
} from './clients/thread.ts';
export type {
  CommandedRun,
  InterruptResponse,
  ResponseFields,
  StartedRun,
  ThreadResponse,
  ThreadRunRequest,
} from './clients/thread-command.ts';
export {
  type BlockDelta,
  type CheckpointEvent,
  type ContentBlock,
  type InputRequestedEvent,
  type LifecycleData,
  type LifecycleEvent,
  type LifecycleStatus,
  type MalformedThreadEvent,
  type MessageData,
  type MessageDataOf,
  type MessageEvent,
  type MessageUsage,
  type MissedEvents,
  missedEvents,
  type OtherThreadEvent,
  type StateEvent,
  type StateUpdateEvent,
  type TaskEvent,
  type ThreadChannel,
  type ThreadCustomEvent,
  type ThreadEvent,
  type ThreadEventOf,
  type ToolData,
  type ToolDataOf,
  type ToolEvent,
} from './clients/thread-event.ts';
export type { ThreadEvents, ThreadEventsOptions } from './clients/thread-events.ts';
export { agentServerPaths, type ThreadPaths } from './clients/thread-paths.ts';
export type { BootstrapOptions } from './clients/thread-states.ts';
export type { ThreadStateOptions, ThreadStreamOptions, Threads } from './clients/threads.ts';
export type { UploadUrl } from './clients/upload-url.ts';
export { InvalidRequestError, type ValidationError } from './clients/validation-error.ts';
